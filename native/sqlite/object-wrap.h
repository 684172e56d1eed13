// Included before the database driver. Objects of Node.js 24.21 register a hook when they are made and remove it when
// they are collected; the removal aborts the process when no JavaScript runs at that moment. The driver ends what it
// has open by a hook of its own, so its objects get none, as with other versions of Node.js.
#pragma once
#include <node.h>

namespace node {
inline void withoutHook(v8::Isolate *, void (*)(void *), void *) {}
}  // namespace node

#define AddEnvironmentCleanupHook withoutHook
#define RemoveEnvironmentCleanupHook withoutHook
#include <node_object_wrap.h>
#undef AddEnvironmentCleanupHook
#undef RemoveEnvironmentCleanupHook
