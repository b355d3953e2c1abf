/* SPDX-License-Identifier: Apache-2.0 */
/* Extended JSON against libbson: every type in every form that the specification publishes, and the
 * differences: the rows with `accepted` in `refused`, and `different`; the mongo shell's syntax. */
#include "extjson_reading.h"

#define OID "{\"$oid\":\"5f0A00000000bcdeff000001\"}"

/* Documents that libbson and this parser convert to the same bytes. */
static const char *const same[] = {
    "{}",
    " {}" + 1,
    "{\"a\":1}",
    " { \"a\" :\t1 , \"b\" : [ ] , \"c\" : { } } " + 1,
    "{\"\":1}",
    "{\"a\":\"\",\"b\":\"x\",\"c\":\"\\u0000\",\"d\":\"a\\u0000b\"}",
    "{\"a\":true,\"b\":false,\"c\":null}",
    "{\"a\":[1,\"x\",null,true,[],{},[[[1]]],{\"a\":[]}]}",
    "{\"a\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}",
    /* numbers */
    "{\"a\":0,\"b\":-0,\"c\":-1,\"d\":2147483647,\"e\":-2147483648}",
    "{\"a\":2147483648,\"b\":-2147483649,\"c\":9223372036854775807,\"d\":-9223372036854775808}",
    "{\"a\":999999999999999999,\"b\":1000000000000000000,\"c\":-999999999999999999}",
    "{\"a\":1.0,\"b\":-0.0,\"c\":1.5e10,\"d\":1E5,\"e\":1e+5,\"f\":1e-5,\"g\":0.1}",
    "{\"a\":9007199254740993.0,\"b\":9007199254740992.0,\"c\":123456789012345678901.5}",
    "{\"a\":1e22,\"b\":1e23,\"c\":1.7976931348623157e308,\"d\":4.9e-324,\"e\":1e-400}",
    "{\"a\":2.2250738585072011e-308,\"b\":0.000000000000000000000000000001,\"c\":0e99}",
    "{\"a\":-122.41941550000001,\"b\":37.774929500000002,\"c\":0.30000000000000004}",
    "{\"a\":1.00000000000000000000000000000000000000001,\"b\":100000000000000000000.0}",
    "{\"a\":NaN,\"b\":Infinity,\"c\":-Infinity,\"d\":nan,\"e\":INFINITY,\"f\":-infinity}",
    /* strings */
    "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
    "{\"a\":\"\\u0041\\u00e9\\u20AC\\uD83D\\ude00\\uffff\"}",
    "{\"\\u00e9\\n\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\"}",
    "{\"a\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
    "{\"a\":\"012345678901234567890123456789\\n0123456789012345678901234567890\xC3\xA9\"}",
    /* wrappers, canonical */
    "{\"a\":" OID "}",
    "{\"a\":[" OID "," OID "]}",
    "{\"a\":{\"$numberInt\":\"-5\"},\"b\":{\"$numberInt\":\"2147483647\"}}",
    "{\"a\":{\"$numberInt\":\"+5\"},\"b\":{\"$numberInt\":\"007\"}}",
    "{\"a\":{\"$numberLong\":\"-9223372036854775808\"},\"b\":{\"$numberLong\":\"5\"}}",
    "{\"a\":{\"$numberDouble\":\"1.5\"},\"b\":{\"$numberDouble\":\"NaN\"}}",
    "{\"a\":{\"$numberDouble\":\"-0.0\"},\"b\":{\"$numberDouble\":\"-Infinity\"}}",
    "{\"a\":{\"$numberDouble\":\"1.7976931348623157E+308\"},\"b\":{\"$numberDouble\":\"-1\"}}",
    "{\"a\":{\"$numberDecimal\":\"1.50\"},\"b\":{\"$numberDecimal\":\"-0E-6176\"}}",
    "{\"a\":{\"$numberDecimal\":\"NaN\"},\"b\":{\"$numberDecimal\":\"-Infinity\"}}",
    "{\"a\":{\"$numberDecimal\":\"9.999999999999999999999999999999999E+6144\"}}",
    "{\"a\":{\"$date\":{\"$numberLong\":\"-62135596800001\"}}}",
    "{\"a\":{ \"$date\" : { \"$numberLong\" : \"5\" } } , \"b\" : 1}",
    "{\"a\":{\"$binary\":{\"base64\":\"\",\"subType\":\"00\"}}}",
    "{\"a\":{\"$binary\":{\"base64\":\"//8=\",\"subType\":\"80\"}}}",
    "{\"a\":{\"$binary\":{\"subType\":\"5\",\"base64\":\"AQIDBA==\"}},\"b\":1}",
    "{\"a\":{\"$binary\":{\"base64\":\"AQIDBA==\",\"subType\":\"02\"}},\"b\":1}",
    "{\"a\":{\"$binary\":{\"base64\":\"AQ ID\\nBA==\",\"subType\":\"ff\"}},\"b\":1}",
    "{\"a\":{\"$uuid\":\"c8edabc3-f738-4ca3-B68D-ab92a91478a3\"}}",
    "{\"a\":{\"$regularExpression\":{\"pattern\":\"a/\\\"b\",\"options\":\"xmi\"}}}",
    "{\"a\":{\"$regularExpression\":{\"options\":\"i\",\"pattern\":\"\"}},\"b\":1}",
    "{\"a\":{\"$timestamp\":{\"t\":4294967295,\"i\":0}}}",
    "{\"a\":{\"$timestamp\":{ \"i\" : 1 , \"t\" : 2 } },\"b\":1}",
    "{\"_id\":{\"$timestamp\":{\"t\":0,\"i\":0}},\"a\":[{\"$timestamp\":{\"t\":0,\"i\":0}}]}",
    "{\"a\":{\"$minKey\":1},\"b\":{\"$maxKey\":1},\"c\":{\"$undefined\":true}}",
    "{\"a\":{\"$symbol\":\"x\\u0000y\"},\"b\":{\"$symbol\":\"\"}}",
    "{\"a\":{\"$code\":\"return 1\"},\"b\":1}",
    "{\"a\":{\"$code\":\"f()\",\"$scope\":{\"b\":1,\"c\":" OID "}},\"d\":{}}",
    "{\"a\":{\"$code\":\"\",\"$scope\":{}}}",
    "{\"a\":{\"$scope\":{\"b\":[1,2]},\"$code\":\"f()\"},\"d\":1}",
    "{\"a\":{\"$dbPointer\":{\"$ref\":\"d.c\",\"$id\":" OID "}},\"b\":1}",
    "{\"a\":{\"$dbPointer\":{\"$id\":" OID ",\"$ref\":\"\"}}}",
    "{\"a\":{\"\\u0024numberInt\":\"5\"}}",
    /* relaxed */
    "{\"a\":{\"$date\":\"2015-12-31T23:59:59.999Z\"},\"b\":{\"$date\":\"1970-01-01T00:00:00Z\"}}",
    "{\"a\":{\"$date\":\"0001-01-01T00:00:00Z\"},\"b\":{\"$date\":\"9999-12-31T23:59:59.999Z\"}}",
    /* older forms */
    "{\"a\":{\"$date\":\"2016-02-29T12:30:01.5+0100\"},\"b\":{\"$date\":\"2000-02-29T00:00Z\"}}",
    "{\"a\":{\"$date\":\"1969-07-20T20:17:40.12-0530\"},\"b\":{\"$date\":\"2016-12-31T23:59:60Z\"}"
    "}",
    "{\"a\":{\"$date\":0},\"b\":{\"$date\":-1000},\"c\":{\"$date\":1451606399999}}",
    "{\"a\":{\"$binary\":\"AQID\",\"$type\":\"00\"},\"b\":{\"$type\":\"3\",\"$binary\":\"AQ==\"}}",
    "{\"a\":{\"$regex\":\"^a\",\"$options\":\"si\"}}",
    "{\"b\":{\"$regex\":\"b\"}}",
    "{\"a\":{\"$options\":\"i\",\"$regex\":\"^a+$\"},\"b\":1}",
    "{\"a\":{\"$regex\":\"a\",\"$options\":\"\"},\"b\":{\"$regex\":\"a\",\"$options\":\"ii\"}}",
    "{\"a\":{\"$ref\":\"c\",\"$id\":" OID ",\"$db\":\"d\"}}",
    /* ordinary documents */
    "{\"$oid\":\"at the top\"}",
    "{\"$numberInt\":1,\"$date\":2}",
    "{\"a\":{\"b\":1,\"$oid\":\"x\"}}",
    "{\"a\":{\"$type\":\"string\"},\"b\":{\"$type\":{\"$numberInt\":\"2\"}}}",
    "{\"a\":{\"$gt\":1,\"$lt\":{\"$date\":5}},\"b.c\":1}",
    "{\"$db\":\"x\"}",
};

TEST(the_same_as_libbson) {
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_same_as_libbson(same[i], strlen(same[i]));
}

/* Texts that are refused: by libbson, too, unless `accepted`. `where`: the byte that is wrong. */
static const struct {
    const char *text;
    size_t where;
    const char *reason;
    bool accepted; /* by some versions of libbson: a difference */
} refused[] = {
    {"{\"a\":1.}", 7, "a digit is expected after the decimal point", false},
    {"{\"a\":01}", 5, "begins with 0", false},
    {"{\"a\":-01}", 6, "begins with 0", true},
    {"{\"a\":+x}", 6, "a value is expected", false},
    {"{\"a\":.x}", 5, "a value is expected", false},
    {"{\"a\":-}", 6, "a value is expected", false},
    {"{\"a\":1e}", 7, "in an exponent", false},
    {"{\"a\":1e+}", 8, "in an exponent", false},
    {"{\"a\":0x}", 5, "not a hexadecimal integer", false},
    {"{\"a\":0x1G}", 5, "not a hexadecimal integer", false},
    {"{\"a\":-0x10000000000000000}", 5, "not a hexadecimal integer", false},
    {"{\"a\":.5e999}", 5, "beyond the range of a double", false},
    {"{\"a\":1e400}", 5, "beyond the range of a double", false},
    {"{\"a\":9223372036854775808}", 5, "beyond 64 bits", false},
    {"{\"a\":-9223372036854775809}", 5, "beyond 64 bits", false},
    {"{\"a\":18446744073709551617}", 5, "beyond 64 bits", true},
    {"{\"a\":10000000000000000000000000000000000000000}", 5, "beyond 64 bits", false},
    {"{\"a\":inf}", 5, "a value is expected", false},
    {"{\"a\":-nan}", 6, "a value is expected", false},
    {"{\"a\":tru}", 5, "a value is expected", false},
    {"{\"a\":truex}", 9, "a comma or }", false},
    {"{\"a\":True}", 5, "a value is expected", false},
    {"{\"a\":undefinedx}", 5, "a value is expected", false},
    {"{\"a\":1,}", 7, "a key in quotes", false},
    {"{,\"a\":1}", 1, "a key in quotes", false},
    {"{\"a\":1,,\"b\":2}", 7, "a key in quotes", false},
    {"{\"a\":[1,]}", 8, "a value is expected", false},
    {"{\"a\":[,1]}", 6, "a value is expected", false},
    {"{\"a\":[1 2]}", 8, "a comma or ]", false},
    {"{\"a\":[1}}", 7, "a comma or ]", false},
    {"{\"a\":{]}", 6, "a key in quotes", false},
    {"{\"a\" 1}", 5, "a colon", false},
    {"{\"a\":}", 5, "a value is expected", false},
    {"{\"a\":1 \"b\":2}", 7, "a comma or }", false},
    {"{\"a\":1 /* b */}", 7, "a comma or }", false},
    /* the mongo shell */
    {"{1:1}", 1, "a key in quotes", false},
    {"{a-b:1}", 2, "a colon", false},
    {"{a:1,'a':2}", 5, "the key occurs twice", false},
    {"{'a\\u0000':1}", 1, "\\u0000 in a key", false},
    {"{a:'b}", 6, "before the document is complete", false},
    {"{a:'b\n'}", 5, "a control character", false},
    {"{a:/b\\\x01c/}", 6, "a control character", false},
    {"{a:'\\q'}", 4, "an escape that JSON does not have", false},
    {"{a:'x\xFF'}", 5, "not UTF-8", false},
    {"{a:ISODate(\"2015\")}", 11, "a date is a text", false},
    {"{a:ISODate \"2015\"}", 11, "a ( is expected", false},
    {"{a:new Date(2015,1)}", 16, "a ) is expected", false},
    {"{a:new  Dates(1)}", 3, "a value is expected", false},
    {"{a:NumberLong(1.5)}", 14, "NumberLong has an integer", false},
    {"{a:NumberLong()}", 14, "NumberLong has an integer", false},
    {"{a:NumberDecimal()}", 17, "NumberDecimal has a number", false},
    {"{a:NumberLong('9223372036854775808')}", 14, "NumberLong has an integer", false},
    {"{a:NumberInt(0x80000000)}", 13, "NumberInt has an integer", false},
    {"{a:NumberDecimal('x')}", 17, "NumberDecimal has a number", false},
    {"{a:Double('x')}", 10, "Double has a number", false},
    {"{a:ObjectId('5f')}", 12, "an ObjectId is", false},
    {"{a:UUID('5f')}", 8, "a UUID is", false},
    {"{a:BinData(256,'')}", 11, "BinData has a number", false},
    {"{a:BinData(0)}", 12, "BinData has a number", false},
    {"{a:BinData(0,'A')}", 13, "in base64", false},
    {"{a:Timestamp(1)}", 14, "Timestamp has two integers", false},
    {"{a:Timestamp(0,0)}", 13, "a server replaces it", false},
    {"{a:DBRef('c')}", 12, "DBRef has the name", false},
    {"{a:DBRef('c',{})}", 13, "a value is expected", false},
    {"{a:DBPointer('c',5)}", 17, "DBPointer has the name", false},
    {"{a:MinKey(1)}", 10, "a ) is expected", false},
    {"{a:RegExp('a',5)}", 14, "RegExp has a text", false},
    {"{a:RegExp('a','5')}", 14, "are letters", false},
    {"{a:/x/5}", 6, "are letters", false},
    {"{a://}", 4, "is not empty", false},
    {"{a:/x}", 6, "before the document is complete", false},
    {"{a:/\\\\/}", 4, "which mongoimport reads as one", false},
    {"{\"a\":\"b}", 8, "before the document is complete", false},
    {"{\"a\":{\"b\":1}", 12, "before the document is complete", false},
    {"{\"a\":[{\"b\":1}", 13, "before the document is complete", false},
    {"{\"a\":{\"$oid\":\"5f0000000000000000000000\"}", 40, "before the document is", false},
    {"{\"a\":\"\t\"}", 6, "a control character", false},
    {"{\"a\":\"\n\"}", 6, "a control character", false},
    {"{\"a\":\"\x01\"}", 6, "a control character", false},
    {"{\"a\tb\":1}", 3, "a control character", false},
    {"{\"a\":\"\\q\"}", 6, "an escape that JSON does not have", false},
    {"{\"a\":\"\\x41\"}", 6, "an escape that JSON does not have", false},
    {"{\"a\":\"\\u12g4\"}", 6, "four hexadecimal digits", false},
    {"{\"a\":\"\\ud800\"}", 6, "half of a surrogate pair", false},
    {"{\"a\":\"\\ud800\\u0041\"}", 6, "half of a surrogate pair", false},
    {"{\"a\":\"\\udc00\"}", 6, "half of a surrogate pair", false},
    {"{\"a\":\"x\\udc00\\ud800\"}", 7, "half of a surrogate pair", false},
    {"{\"a\":\"xy\xFF\"}", 8, "not UTF-8", false},
    {"{\"a\":\"\xED\xA0\x80\"}", 6, "not UTF-8", false},
    {"{\"a\":\"\xE2\x82\"}", 6, "not UTF-8", false},
    {"{\"a\":\"\xF4\x90\x80\x80\"}", 6, "not UTF-8", false},
    {"{\"a\":\"\xC0\x80\"}", 6, "not UTF-8", true},
    {"{\"a\xFF\":1}", 3, "not UTF-8", false},
    {"{\"a\\u0000\":1}", 3, "\\u0000 in a key", false},
    /* duplicate keys */
    {"{\"a\":1,\"a\":2}", 7, "the key occurs twice", true},
    {"{\"a\":1,\"b\":2,\"\\u0061\":2}", 13, "the key occurs twice", true},
    {"{\"x\":[{\"a\":1,\"b\":{\"a\":1},\"a\":2}]}", 25, "the key occurs twice", true},
    {"{\"\":1,\"\":2}", 6, "the key occurs twice", true},
    {"{\"_id\":1,\"a\":1,\"_id\":2}", 15, "the key occurs twice", true},
    /* wrappers */
    {"{\"a\":{\"$oid\":\"5f000000000000000000000\"}}", 13, "an ObjectId is", false},
    {"{\"a\":{\"$oid\":\"5f0000000000000000000zzz\"}}", 13, "an ObjectId is", true},
    {"{\"a\":{\"$oid\":5}}", 13, "an ObjectId is", false},
    {"{\"a\":{\"$oid\":\"5f0000000000000000000000\",\"b\":1}}", 39, "no further keys", false},
    {"{\"a\":{\"$numberInt\":5}}", 19, "$numberInt is", false},
    {"{\"a\":{\"$numberInt\":\"\"}}", 19, "$numberInt is", false},
    {"{\"a\":{\"$numberInt\":\"-\"}}", 19, "$numberInt is", false},
    {"{\"a\":{\"$numberInt\":\" 5\"}}", 19, "$numberInt is", true},
    {"{\"a\":{\"$numberInt\":\"5.0\"}}", 19, "$numberInt is", false},
    {"{\"a\":{\"$numberInt\":\"2147483648\"}}", 19, "$numberInt is", false},
    {"{\"a\":{\"$numberLong\":5}}", 20, "$numberLong is", false},
    {"{\"a\":{\"$numberLong\":\"9223372036854775808\"}}", 20, "$numberLong is", false},
    {"{\"a\":{\"$numberDouble\":\"abc\"}}", 22, "$numberDouble is", true},
    {"{\"a\":{\"$numberDouble\":\"1.5x\"}}", 22, "$numberDouble is", true},
    {"{\"a\":{\"$numberDouble\":\"1.\"}}", 22, "$numberDouble is", true},
    {"{\"a\":{\"$numberDouble\":\"\"}}", 22, "$numberDouble is", true},
    {"{\"a\":{\"$numberDouble\":\"0x10\"}}", 22, "$numberDouble is", true},
    {"{\"a\":{\"$numberDouble\":\"1e999\"}}", 22, "$numberDouble is", false},
    {"{\"a\":{\"$numberDouble\":1.5}}", 22, "$numberDouble is", false},
    {"{\"a\":{\"$numberDecimal\":\"abc\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"1e 5\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"NaN\\u0000x\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"1e99999999999999999999\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"1e4294967297\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"0e99999999999999999999\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"1e6145\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"1.00000000000000000000000000000000001\"}}", 23,
     "$numberDecimal is", true},
    {"{\"a\":{\"$numberDecimal\":\"1E6145\"}}", 23, "$numberDecimal is", true},
    {"{\"a\":{\"$date\":\"2015-02-29T00:00:00Z\"}}", 14, "$date is", true},
    {"{\"a\":{\"$date\":\"2015-04-31T00:00:00Z\"}}", 14, "$date is", true},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T24:00:00Z\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28 00:00:00Z\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00.1234Z\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00.Z\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00+2400\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00+0160\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00+01000\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00+01:0x\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00Z0\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:60:00Z\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:61Z\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-13-28T00:00:00Z\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"2015-02-28\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":\"\"}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":1.5}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":true}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":{\"$numberLong\":\"5\"},\"x\":1}}", 33, "no further keys", false},
    {"{\"a\":{\"$date\":{\"$numberLong\":\"5\",\"x\":1}}}", 32, "no further keys", false},
    {"{\"a\":{\"$date\":{\"$numberInt\":\"5\"}}}", 14, "$date is", false},
    {"{\"a\":{\"$date\":5,\"x\":1}}", 15, "no further keys", false},
    {"{\"a\":{\"$binary\":{\"base64\":\"AQ\",\"subType\":\"00\"}}}", 26, "base64", false},
    {"{\"a\":{\"$binary\":{\"base64\":\"AB==\",\"subType\":\"00\"}}}", 26, "base64", false},
    {"{\"a\":{\"$binary\":{\"base64\":\"AA=A\",\"subType\":\"00\"}}}", 26, "base64", false},
    {"{\"a\":{\"$binary\":{\"base64\":\"A-_A\",\"subType\":\"00\"}}}", 26, "base64", false},
    {"{\"a\":{\"$binary\":{\"base64\":\"AQID\",\"subType\":\"005\"}}}", 43, "one or two", true},
    {"{\"a\":{\"$binary\":{\"base64\":\"AQID\",\"subType\":\"x\"}}}", 43, "one or two", false},
    {"{\"a\":{\"$binary\":{\"base64\":\"AQID\"}}}", 32, "a comma and another key", false},
    {"{\"a\":{\"$binary\":{\"base64\":\"AQID\",\"base64\":\"AQID\"}}}", 42, "base64", false},
    {"{\"a\":{\"$binary\":\"AQID\"}}", 22, "a comma and another key", false},
    {"{\"a\":{\"$binary\":\"AQID\",\"$type\":\"00\",\"c\":1}}", 35, "no further keys", false},
    {"{\"a\":{\"$binary\":5}}", 16, "$binary is", false},
    {"{\"a\":{\"$uuid\":\"c8edabc3f7384ca3b68dab92a91478a3\"}}", 14, "a UUID is", false},
    {"{\"a\":{\"$uuid\":\"c8edabc3-f738-4ca3-b68d-ab92a91478ag\"}}", 14, "a UUID is", true},
    {"{\"a\":{\"$regex\":\"a\\u0000\"}}", 15, "\\u0000 in a regular expression", false},
    {"{\"a\":{\"$regex\":\"a\",\"$options\":\"i1\"}}", 30, "are letters", true},
    {"{\"a\":{\"$regex\":5}}", 15, "$regex is", false},
    {"{\"a\":{\"$regex\":\"a\",\"b\":1}}", 18, "$regex is", false},
    {"{\"a\":{\"$options\":\"i\"}}", 20, "a comma and another key", false},
    {"{\"a\":{\"$regularExpression\":{\"pattern\":\"a\"}}}", 41, "a comma and another", false},
    {"{\"a\":{\"$timestamp\":{\"t\":4294967296,\"i\":1}}}", 24, "$timestamp is", true},
    {"{\"a\":{\"$timestamp\":{\"t\":1,\"i\":-1}}}", 30, "$timestamp is", false},
    {"{\"a\":{\"$timestamp\":{\"t\":1,\"i\":1.5}}}", 30, "$timestamp is", false},
    {"{\"a\":{\"$timestamp\":{\"t\":1}}}", 25, "a comma and another key", false},
    {"{\"a\":{\"$timestamp\":{\"t\":1,\"t\":1}}}", 25, "$timestamp is", false},
    {"{\"a\":{\"$timestamp\":{\"t\":0,\"i\":0}}}", 19, "a server replaces it", true},
    {"{\"_id\":1,\"a\":{\"$timestamp\":{\"i\":0,\"t\":0}}}", 27, "a server replaces it", true},
    {"{\"a\":{\"$minKey\":2}}", 16, "have the value 1", false},
    {"{\"a\":{\"$maxKey\":10}}", 16, "have the value 1", false},
    {"{\"a\":{\"$maxKey\":1.0}}", 16, "have the value 1", false},
    {"{\"a\":{\"$undefined\":false}}", 19, "has the value true", true},
    {"{\"a\":{\"$symbol\":5}}", 16, "$symbol is", false},
    {"{\"a\":{\"$symbol\":\"a\",\"$symbol\":\"b\"}}", 19, "no further keys", true},
    {"{\"a\":{\"$code\":5}}", 14, "$code is", false},
    {"{\"a\":{\"$code\":\"f\",\"$scope\":[1]}}", 27, "$scope is", false},
    {"{\"a\":{\"$scope\":{}}}", 17, "a comma and another key", false},
    {"{\"a\":{\"$code\":\"f\",\"$scope\":{\"b\":1,\"b\":2}}}", 34, "occurs twice", true},
    {"{\"a\":{\"$dbPointer\":{\"$ref\":\"a\"}}}", 30, "a comma and another key", false},
    {"{\"a\":{\"$dbPointer\":{\"$ref\":\"a\",\"$id\":\"b\"}}}", 37, "$dbPointer is", false},
};

TEST(refused_with_position_and_reason) {
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *text = refused[i].text;
        converted c = convert_text(text);
        if (c.bytes)
            fail_msg("not refused: %s", text);
        if (!strstr(c.reason, refused[i].reason) || c.where != refused[i].where)
            fail_msg("%s: byte %zu: %s", text, c.where, c.reason);
        converted theirs = convert_by_libbson(text, strlen(text));
        if (theirs.bytes && !refused[i].accepted)
            fail_msg("libbson accepts %s", text);
        free_converted(&theirs);
    }
}

/* Documents that libbson refuses or changes, with the canonical form of what is stored. */
static const struct {
    const char *text, *canonical;
} different[] = {
    {"{\"a\":{\"$type\":2}}", "{ \"a\" : { \"$type\" : { \"$numberInt\" : \"2\" } } }"},
    {"{\"a\":{\"$type\":\"array\"}}", "{ \"a\" : { \"$type\" : \"array\" } }"},
    {"{\"a\":{\"$type\":[1]}}", "{ \"a\" : { \"$type\" : [ { \"$numberInt\" : \"1\" } ] } }"},
    {"{\"a\":{\"$date\":\"2015-02-28T00:00:00+05:30\"}}",
     "{ \"a\" : { \"$date\" : { \"$numberLong\" : \"1425061800000\" } } }"},
    {"{\"a\":{\"$regex\":\"a\",\"$options\":\"i\"},\"b\":{\"$regex\":\"b\"}}",
     "{ \"a\" : { \"$regularExpression\" : { \"pattern\" : \"a\", \"options\" : \"i\" } }, "
     "\"b\" : { \"$regularExpression\" : { \"pattern\" : \"b\", \"options\" : \"\" } } }"},
    {"{\"a\":[0,{\"$code\":\"f\"}]}",
     "{ \"a\" : [ { \"$numberInt\" : \"0\" }, { \"$code\" : \"f\" } ] }"},
    {"{\"a\":{\"$code\":\"f\",\"$scope\":{\"b\":{\"$code\":\"g\",\"$scope\":{}}}}}",
     "{ \"a\" : { \"$code\" : \"f\", \"$scope\" : { \"b\" : { \"$code\" : \"g\", \"$scope\" : { } "
     "} } } }"},
    {"{\"a\":{\"$code\":\"f\",\"$scope\":{\"b\":{\"$date\":5}}}}",
     "{ \"a\" : { \"$code\" : \"f\", \"$scope\" : { \"b\" : { \"$date\" : { \"$numberLong\" : "
     "\"5\" } } } } }"},
};

TEST(stored_where_libbson_refuses_or_changes) {
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
        converted c = convert_text(different[i].text);
        bson_t document;
        if (!c.bytes)
            fail_msg("%s: byte %zu: %s", different[i].text, c.where, c.reason);
        assert_true(bson_init_static(&document, c.bytes, c.length));
        char *json = bson_as_canonical_extended_json(&document, NULL);
        assert_string_equal(json, different[i].canonical);
        bson_free(json);
        free_converted(&c);
    }
}

/* Pairs: the syntax of the mongo shell, and the same document in Extended JSON. */
static const char *const of_the_shell[][2] = {
    {"{a:1,_b:2,$c:3,d4:4,new:5}", "{\"a\":1,\"_b\":2,\"$c\":3,\"d4\":4,\"new\":5}"},
    {"{'a':1, 'b\"\\'c' : 2 , \"b\\\"'d\":3}", "{\"a\":1,\"b\\\"'c\":2,\"b\\\"'d\":3}"},
    {"{a:'','b':['x\"y\\'z','\\u0041\\n}']}", "{\"a\":\"\",\"b\":[\"x\\\"y'z\",\"A\\n}\"]}"},
    {"{a:{b:{c:[{d:1}]}},'e':{'f':1}}", "{\"a\":{\"b\":{\"c\":[{\"d\":1}]}},\"e\":{\"f\":1}}"},
    {"{a:ISODate('2015-12-31T23:59:59.999Z'),b:new Date( 5 ),c:Date(\"1970-01-01T00:00:00+0100\")}",
     "{\"a\":{\"$date\":1451606399999},\"b\":{\"$date\":5},\"c\":{\"$date\":-3600000}}"},
    {"{a:NumberLong(-5),b:NumberLong('5'),c:NumberInt(\"0x10\"),d:new NumberLong (0X1f)}",
     "{\"a\":{\"$numberLong\":\"-5\"},\"b\":{\"$numberLong\":\"5\"},\"c\":16,"
     "\"d\":{\"$numberLong\":\"31\"}}"},
    {"{a:NumberDecimal('1.50'),b:NumberDecimal(-2)}",
     "{\"a\":{\"$numberDecimal\":\"1.50\"},\"b\":{\"$numberDecimal\":\"-2\"}}"},
    {"{a:Long('-5'),b:Int32(16),c:Decimal128('1.50'),d:Double(1),e:Timestamp({ t: 5, i: 1 })}",
     "{\"a\":{\"$numberLong\":\"-5\"},\"b\":16,\"c\":{\"$numberDecimal\":\"1.50\"},\"d\":1.0,"
     "\"e\":{\"$timestamp\":{\"t\":5,\"i\":1}}}"},
    {"{_id:ObjectId('5f0A00000000bcdeff000001')}", "{\"_id\":" OID "}"},
    {"{a:{$oid:'5f0A00000000bcdeff000001'},b:{'$date':0}}", "{\"a\":" OID ",\"b\":{\"$date\":0}}"},
    {"{a:UUID('c8edabc3-f738-4ca3-B68D-ab92a91478a3')}",
     "{\"a\":{\"$uuid\":\"c8edabc3-f738-4ca3-B68D-ab92a91478a3\"}}"},
    {"{a:BinData(2,'AQID'),b:BinData(0x05,\"\")}",
     "{\"a\":{\"$binary\":\"AQID\",\"$type\":\"02\"},\"b\":{\"$binary\":\"\",\"$type\":\"05\"}}"},
    {"{a:Timestamp(5,1),b:[Timestamp(0,0)]}",
     "{\"a\":{\"$timestamp\":{\"t\":5,\"i\":1}},\"b\":[{\"$timestamp\":{\"t\":0,\"i\":0}}]}"},
    {"{a:RegExp('^a','mi'),b:RegExp(\"x\"),c:/a\\/[\"'}]\\d/i,d:[/x/]}",
     "{\"a\":{\"$regex\":\"^a\",\"$options\":\"im\"},\"b\":{\"$regex\":\"x\"},"
     "\"c\":{\"$regex\":\"a/[\\\"'}]\\\\d\",\"$options\":\"i\"},\"d\":[{\"$regex\":\"x\"}]}"},
    {"{a:DBRef('c',5),b:new DBRef('c',ObjectId('5f0A00000000bcdeff000001'),'d')}",
     "{\"a\":{\"$ref\":\"c\",\"$id\":5},\"b\":{\"$ref\":\"c\",\"$id\":" OID ",\"$db\":\"d\"}}"},
    {"{a:DBPointer('c',ObjectId('5f0A00000000bcdeff000001'))}",
     "{\"a\":{\"$dbPointer\":{\"$ref\":\"c\",\"$id\":" OID "}}}"},
    {"{a:MinKey,b:MaxKey(),c:undefined,d:MinKey( )}",
     "{\"a\":{\"$minKey\":1},\"b\":{\"$maxKey\":1},\"c\":{\"$undefined\":true},"
     "\"d\":{\"$minKey\":1}}"},
    {"{a:NaN,b:Infinity,c:+Infinity,d:-Infinity}",
     "{\"a\":NaN,\"b\":Infinity,\"c\":Infinity,\"d\":-Infinity}"},
    {"{a:+5,b:.5,c:-.5e1,d:0x1F,e:-0x1f,f:0xFFFFFFFF}",
     "{\"a\":5,\"b\":0.5,\"c\":-5.0,\"d\":31,\"e\":-31,\"f\":4294967295}"},
    {"{a:[Boolean(1),Boolean(),Boolean(''),Boolean(.0),Boolean(NaN),Boolean(new Boolean(true))]}",
     "{\"a\":[true,false,false,false,false,true]}"},
    {"{a:[Boolean(NumberLong(0)),Boolean(new Date(0)),Boolean(MinKey),Boolean(false),Boolean(0)]}",
     "{\"a\":[true,true,true,false,false]}"}, /* values of classes are true */
};

TEST(the_syntax_of_the_shell) {
    for (size_t i = 0; i < sizeof of_the_shell / sizeof of_the_shell[0]; i++) {
        converted shell = convert_text(of_the_shell[i][0]), json = convert_text(of_the_shell[i][1]);
        if (!shell.bytes || !json.bytes)
            fail_msg("%s: byte %zu: %s; %s", of_the_shell[i][0], shell.where, shell.reason,
                     json.reason);
        assert_true(shell.shell && !json.shell);
        assert_int_equal(shell.used, strlen(of_the_shell[i][0]));
        if (shell.length != json.length || memcmp(shell.bytes, json.bytes, json.length) != 0)
            fail_msg("not the same: %s", of_the_shell[i][0]);
        free_converted(&shell);
        free_converted(&json);
    }
}

TEST(nested_functions_have_a_limit) {
    char text[10000] = "{a:";
    for (int i = 0; i < 900; i++)
        strcat(text, "Boolean(");
    strcat(text, "}");
    converted c = convert_text(text);
    assert_null(c.bytes);
    assert_string_equal(c.reason, "nested deeper than 100 levels");
}

TEST(nested_functions_write_no_further_than_the_room) {
    char text[2000] = "{a:", *at = text + 3;
    uint8_t to[8000], *written;
    const char *after;
    bool own;
    sl_extjson *parser;
    sl_error error;
    assert_true(sl_extjson_create("portable", utf8_valid, &parser, &error));
    for (int i = 0; i < 97; i++)
        at = stpcpy(at, "Boolean(");
    memset(to, 0x55, sizeof to);
    memset(stpcpy(at, "'xyz'"), ')', 97);
    strcat(text, "}");
    assert_int_equal(sl_extjson_document(parser, text, text + strlen(text), NULL, to, to + 600,
                                         &after, &written, &own),
                     SL_EXTJSON_NO_ROOM);
    for (size_t i = 600 + SL_SLACK; i < sizeof to; i++)
        assert_int_equal(to[i], 0x55);
    sl_extjson_destroy(parser);
}

TEST(code_keeps_its_nuls_and_a_pattern_its_options) {
    converted c = convert_text("{\"a\":{\"$code\":\"x\\u0000y\"},\"b\":{\"$regex\":\"\","
                               "\"$options\":\"igz\"}}");
    bson_t document;
    bson_iter_t iter;
    uint32_t length;
    assert_true(bson_init_static(&document, c.bytes, c.length));
    assert_true(bson_iter_init_find(&iter, &document, "a"));
    assert_memory_equal(bson_iter_code(&iter, &length), "x\0y", 4);
    assert_int_equal(length, 3);
    const char *options;
    assert_true(bson_iter_next(&iter));
    assert_string_equal(bson_iter_regex(&iter, &options), "");
    assert_string_equal(options, "giz");
    free_converted(&c);
}

/* ---- _id ---- */

static void assert_becomes(const char *text, const int64_t *id, const char *canonical, bool own) {
    converted c = convert(text, strlen(text), id);
    bson_t document;
    if (!c.bytes)
        fail_msg("%s: byte %zu: %s", text, c.where, c.reason);
    assert_true(bson_init_static(&document, c.bytes, c.length));
    assert_true(bson_validate(&document, BSON_VALIDATE_UTF8, NULL));
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_same_json(json, canonical);
    assert_int_equal(c.own_id, own);
    bson_free(json);
    free_converted(&c);
}

TEST(an_id_is_the_first_field) {
    const int64_t id = 77;
    static const struct {
        const char *text, *with, *without;
        bool own;
    } rows[] = {
        {"{}", "{ \"_id\" : 77 }", "{ }", false},
        {"{\"a\":1}", "{ \"_id\" : 77, \"a\" : 1 }", "{ \"a\" : 1 }", false},
        {"{\"_id\":1}", "{ \"_id\" : 1 }", NULL, true},
        {"{\"_id\":\"x\",\"a\":1}", "{ \"_id\" : \"x\", \"a\" : 1 }", NULL, true},
        {"{\"a\":1,\"_id\":\"x\"}", "{ \"_id\" : \"x\", \"a\" : 1 }", NULL, true},
        {"{\"a\":1,\"_id\":{\"k\":[1,2]},\"b\":\"long enough to be moved by more than a vector\"}",
         "{ \"_id\" : { \"k\" : [ 1, 2 ] }, \"a\" : 1, \"b\" : \"long enough to be moved by more "
         "than a vector\" }",
         NULL, true},
        {"{\"a\":1,\"b\":2,\"_id\":" OID ",\"c\":{}}",
         "{ \"_id\" : { \"$oid\" : \"5f0a00000000bcdeff000001\" }, \"a\" : 1, \"b\" : 2, \"c\" : { "
         " "
         "} }",
         NULL, true},
        {"{\"a\":{\"_id\":1},\"_i\":2,\"_idx\":3}",
         "{ \"_id\" : 77, \"a\" : { \"_id\" : 1 }, \"_i\" : 2, \"_idx\" : 3 }",
         "{ \"a\" : { \"_id\" : 1 }, \"_i\" : 2, \"_idx\" : 3 }", false},
        {"{\"a\":1,\"\\u005fid\":null}", "{ \"_id\" : null, \"a\" : 1 }", NULL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_becomes(rows[i].text, &id, rows[i].with, rows[i].own);
        assert_becomes(rows[i].text, NULL, rows[i].without ? rows[i].without : rows[i].with,
                       rows[i].own);
    }
}

TEST(a_large_id_is_moved) {
    const int64_t id = 1;
    enum { SIZE = 70000 };
    char *text = unit_keep(malloc(2 * SIZE + 100));
    int at = sprintf(text, "{\"a\":\"");
    memset(text + at, 'a', SIZE);
    at += SIZE + sprintf(text + at + SIZE, "\",\"_id\":\"");
    memset(text + at, 'b', SIZE);
    at += SIZE + sprintf(text + at + SIZE, "\",\"c\":1}");
    converted c = convert(text, (size_t)at, &id);
    bson_t document;
    bson_iter_t iter;
    assert_true(bson_init_static(&document, c.bytes, c.length));
    assert_true(bson_validate(&document, BSON_VALIDATE_UTF8, NULL));
    assert_true(bson_iter_init(&iter, &document) && bson_iter_next(&iter));
    assert_string_equal(bson_iter_key(&iter), "_id");
    assert_int_equal(bson_iter_utf8(&iter, NULL)[SIZE - 1], 'b');
    assert_true(bson_iter_next(&iter) && bson_iter_next(&iter) && !bson_iter_next(&iter));
    free_converted(&c);
}

/* ---- limits ---- */

/* A document of `depth` levels, every second one an array if `arrays`. */
static char *nested(unsigned depth, bool arrays) {
    char *text = unit_keep(malloc((size_t)depth * 12 + 20)), *at = text;
    for (unsigned i = 0; i < depth; i++)
        at += sprintf(at, arrays && i % 2 == 1 ? "[" : "{\"a\":");
    at += sprintf(at, "1");
    for (unsigned i = depth; i-- > 0;)
        *at++ = arrays && i % 2 == 1 ? ']' : '}';
    *at = 0;
    return text;
}

TEST(a_hundred_levels) {
    for (int arrays = 0; arrays < 2; arrays++) {
        for (unsigned depth = 1; depth <= 102; depth++) {
            char *text = nested(depth, arrays);
            converted c = convert_text(text);
            assert_int_equal(c.bytes != NULL, depth <= SL_EXTJSON_DEPTH_MAX);
            if (!c.bytes)
                assert_string_equal(c.reason, "nested deeper than 100 levels");
            free_converted(&c);
        }
    }
}

TEST(sixteen_mebibytes) {
    const size_t most = (size_t)16 << 20, room = most + 4096;
    char *text = unit_keep(malloc(room));
    for (size_t more = 0; more < 2; more++) {
        size_t length = most - 4 - 1 - 2 - 4 - 1 - 1 + more; /* of the string's value */
        int at = sprintf(text, "{\"a\":\"");
        memset(text + at, 'x', length);
        memcpy(text + at + length, "\"}", 2);
        converted c = convert_with(all_parsers()[0], text, (size_t)at + length + 2, NULL, 20 << 20);
        assert_int_equal(c.bytes != NULL, more == 0);
        if (more)
            assert_string_equal(c.reason, "a document of more than 16 MiB");
        else
            assert_int_equal(c.length, most);
        free_converted(&c);
    }
}

TEST(many_keys) {
    enum { KEYS = 200000 };
    char *text = unit_keep(malloc((size_t)KEYS * 12 + 100)), *at = text;
    *at++ = '{';
    for (int i = 0; i < KEYS; i++)
        at += sprintf(at, "\"%d\":1,", i);
    char *end = at;
    strcpy(end, "\"x\":1}");
    assert_same_as_libbson(text, strlen(text));
    strcpy(end, "\"3\":1}");
    converted c = convert_text(text);
    assert_null(c.bytes);
    assert_string_equal(c.reason, "the key occurs twice");
    assert_int_equal(c.where, end - text);
}

/* A parser compares keys with those of earlier documents: of any two documents, the second gives
 * the same result as with a new parser. */
TEST(earlier_documents_change_nothing) {
    static const char *const texts[] = {
        "{\"a\":1,\"b\":{\"a\":2,\"c\":[{\"a\":1},{\"a\":2,\"b\":3}]},\"c\":3}",
        "{\"a\":1,\"b\":{\"a\":1},\"a\":2}",
        "{\"b\":{\"a\":1,\"c\":[{\"a\":1,\"b\":2,\"a\":3}]}}",
        "{\"b\":{\"b\":{\"b\":1},\"a\":2},\"b\":2}",
        "{\"c\":[{\"a\":1},[{\"a\":1,\"a\":2}]]}",
        "{\"c\":[[],{},{\"a\":1},7],\"a\":{},\"b\":[]}",
        "{\"\\u0061\":1,\"b\":2}",
        "{\"\\u0061\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"a\\\"b\":1,\"a\":2,\"a\\\\\":3}",
        "{\"a\\\\b\":1,\"a\\b\":2}",
        "{\"a\\b\":1,\"c\":2,\"a\\b\":3}",
        "{\"a\\nb\":1}",
        "{\"a\nb\":1}",
        "{\"\":1,\"a\":2,\"\":3}",
        "{ \"a\" : 1 , \"b\" :{ \"a\" : 2 } }",
        "{\"a}b\":1}",
        "{\"a}",
        "{\"a9}\":2,\"a\":1}",
        "{\"a9}",
        "{\"K\xC3\xB6ln\":1,\"a\":2}",
        "{\"K\xC3ln\":1}",
        "{\"a_key_of_thirty_bytes_________\":1,\"b\":1,\"a_key_of_thirty_bytes_________\":1}",
        "{\"a_key_of_thirty-one_bytes______\":1,\"b\":1,\"a_key_of_thirty-one_bytes______\":1}",
        "{\"a_key_of_thirty-one_bytes______\":{\"b\":{\"a\":1,\"b\":2,\"a\":3}}}",
        "{\"a_key_of_thirty-one_bytes______\":{\"b\":1},\"b\":2}",
        "{\"_id\":1,\"a\":1}",
        "{\"a\":1,\"_id\":{\"a\":1},\"b\":1}",
        "{\"a\":1,\"_id\":2,\"b\":1,\"_id\":3}",
        "{\"a\":{\"$oid\":\"0123456789abcdef01234567\"},\"b\":{\"$numberLong\":\"5\"}}",
        "{\"a\":{\"$code\":\"f\",\"$scope\":{\"a\":1,\"b\":{\"a\":2}}},\"b\":1}",
        "{\"a\":{\"$code\":\"f\",\"$scope\":{\"b\":1,\"b\":2}}}",
        "{\"a\":1,\"b\"}",
        "{\"a\":1,\"b\":{\"a\":2,\"c\":[{\"a\":1},{\"a\":}]}}",
    };
    const size_t count = sizeof texts / sizeof texts[0];
    const int64_t id = 7;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            converted both[2];
            destroy_parsers(all_parsers());
            converted before = convert(texts[i], strlen(texts[i]), &id);
            both[0] = convert(texts[k], strlen(texts[k]), &id);
            destroy_parsers(all_parsers());
            both[1] = convert(texts[k], strlen(texts[k]), &id);
            assert_string_equal(both[0].reason, both[1].reason);
            assert_int_equal(both[0].where, both[1].where);
            assert_int_equal(both[0].length, both[1].length);
            assert_int_equal(both[0].used, both[1].used);
            if (both[0].bytes)
                assert_memory_equal(both[0].bytes, both[1].bytes, both[0].length);
            free_converted(&before);
            free_converted(&both[0]);
            free_converted(&both[1]);
        }
    }
}

TEST(a_text_after_the_document_is_not_read) {
    static const char text[] = "{\"a\":{\"b\":[1]}} {\"a\":2}";
    converted c = convert_text(text);
    assert_int_equal(c.used, 15);
    free_converted(&c);
}

/* Of {"a}":1} in two parts: the key was seen before, and the second part must not complete it. */
TEST(a_known_key_ends_within_the_text) {
    static const char text[100] = "{\"a}\":1}";
    for (sl_extjson **parser = all_parsers(); *parser; parser++) {
        static const size_t lengths[] = {sizeof "{\"a}\":1}" - 1, sizeof "{\"a}" - 1};
        for (size_t i = 0; i < 2; i++) {
            uint8_t to[1000], *written;
            const char *after;
            bool own;
            sl_extjson_status status = sl_extjson_document(*parser, text, text + lengths[i], NULL,
                                                           to, to + 900, &after, &written, &own);
            assert_int_equal(status, i == 0 ? SL_EXTJSON_OK : SL_EXTJSON_INVALID);
        }
    }
}
