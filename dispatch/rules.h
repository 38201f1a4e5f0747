// The rules of the C allocation family, the same for every line: what NULL, 0, overflow and odd
// alignments mean. They follow glibc 2.36, also where the standards leave a choice.
//
// hz_rule_NAME is what the exported NAME does. Any thread; failure is NULL with errno ENOMEM unless
// said otherwise.
#ifndef HZ_DISPATCH_RULES_H
#define HZ_DISPATCH_RULES_H

#include "dispatch/family.h"

#define HZ_RULE(name, result, parameters, arguments) result hz_rule_##name parameters;
HZ_FAMILY(HZ_RULE)
#undef HZ_RULE

// All rules as a table: what the active table holds unless the library steps aside.
extern const struct hz_family hz_rules;

#endif
