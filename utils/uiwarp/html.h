// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Text and numbers in a page of HTML, which is also well-formed XML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace uiw::tool::html {

// Text as it is to be seen, also as the value of an attribute in double quotes. What is no
// printable ASCII becomes a question mark.
std::string escaped(std::string_view text);

// "1 234 567", the spaces being narrow and not broken at.
std::string number(uint64_t value);
// "1 234 requests", of a noun that takes an s; "1 request".
std::string counted(uint64_t count, const char* noun);
// As number(), in microseconds with three decimals: "1 234.567".
std::string microseconds(int64_t nanoseconds);
// Three digits and a unit with its prefix: "4.44 GB", of 4.44e9 and "B". At least 1 in the unit is
// expected; 0 is "0 B".
std::string scaled(double value, const char* unit);
// A duration of so many nanoseconds: "12.3 ms".
std::string duration(double nanoseconds);
// "37.25": a percentage of 0.3725, for style attributes.
std::string percent(double share);

}  // namespace uiw::tool::html
