# SPDX-License-Identifier: Apache-2.0
"""A small validator for JSON Schema: the keywords that the schemas of the project use."""
import functools
import json
import re
import subprocess

import support

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float),
         "integer": int}
WITHOUT_EFFECT = {"$schema", "$defs", "title", "description", "then", "else"}


def is_of(value, kind):
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def validator(root):
    """Returns a function: is this value valid by the schema?"""
    # One function for each keyword of JSON Schema that the schemas of the project use: is the value valid?
    checks = {
        "$ref": lambda value, ref, _: valid(value, functools.reduce(
            lambda at, part: at[part], ref.removeprefix("#/").split("/"), root)),
        "type": lambda value, kind, _: is_of(value, kind),
        "enum": lambda value, words, _: value in words,
        "const": lambda value, constant, _: value == constant,
        "pattern": lambda value, pattern, _: not isinstance(value, str) or re.search(pattern, value),
        "minLength": lambda value, least, _: not isinstance(value, str) or len(value) >= least,
        "minimum": lambda value, least, _: not is_of(value, "number") or value >= least,
        "exclusiveMinimum": lambda value, least, _: not is_of(value, "number") or value > least,
        "maximum": lambda value, most, _: not is_of(value, "number") or value <= most,
        "minItems": lambda value, least, _: not isinstance(value, list) or len(value) >= least,
        "maxItems": lambda value, most, _: not isinstance(value, list) or len(value) <= most,
        "items": lambda value, schema, _: not isinstance(value, list)
            or all(valid(item, schema) for item in value),
        "minProperties": lambda value, least, _: not isinstance(value, dict) or len(value) >= least,
        "maxProperties": lambda value, most, _: not isinstance(value, dict) or len(value) <= most,
        "required": lambda value, names, _: not isinstance(value, dict) or set(names) <= set(value),
        "properties": lambda value, schemas, _: not isinstance(value, dict)
            or all(valid(value[name], schemas[name]) for name in set(schemas) & set(value)),
        "additionalProperties": lambda value, schema, whole: not isinstance(value, dict)
            or all(valid(value[name], schema) for name in set(value) - set(whole.get("properties", ()))),
        "propertyNames": lambda value, schema, _: not isinstance(value, dict)
            or all(valid(name, schema) for name in value),
        "not": lambda value, schema, _: not valid(value, schema),
        "anyOf": lambda value, schemas, _: any(valid(value, schema) for schema in schemas),
        "allOf": lambda value, schemas, _: all(valid(value, schema) for schema in schemas),
        "if": lambda value, schema, whole: valid(
            value, whole.get("then" if valid(value, schema) else "else", True)),
    }

    def valid(value, schema):
        if isinstance(schema, bool):
            return schema
        return all(checks[keyword](value, argument, schema)
                   for keyword, argument in schema.items() if keyword not in WITHOUT_EFFECT)

    return lambda value: valid(value, root)


def accepts(schema, text):
    """Is a text in YAML valid by the schema?"""
    done = subprocess.run([support.program("tests/yaml_json")], input=text.encode("utf-8"),
                          capture_output=True, check=True, timeout=support.LIMIT)
    return validator(schema)(json.loads(done.stdout))
