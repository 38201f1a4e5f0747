// Every line, once. Adding one: its folder, a row here, its target in lines/BUILD.bazel.
// The first row is the default.
#ifndef HZ_LINES_LIST_H
#define HZ_LINES_LIST_H

#define HZ_LINES(X) X(hz3) X(hz4) X(hz5) X(hz6)

#endif
