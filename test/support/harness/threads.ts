import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import threads, { Worker, type WorkerOptions } from 'node:worker_threads'

/** The path of a module of the product in the compiled tree (core/runtime/tree.ts). */
const COMPILED = /(?<=^\/.*)\/build\/(?!bundle\/|test\/)(.+\.js)$/

/** Returns the bundle of a thread's module, where the set-up has made one. */
function bundleOf(module: string | URL): string | URL {
  const bundle = String(module).replace(COMPILED, '/build/bundle/$1')
  return existsSync(bundle) ? bundle : module
}

/**
 * Makes threads of the product run from their bundle, which is what users run. A test opens the state several times,
 * and the state's thread starts from its bundle in a quarter of the CPU time.
 */
export function useBundledThreads(): void {
  threads.Worker = class extends Worker {
    constructor(module: string | URL, options?: WorkerOptions) {
      super(bundleOf(module), options)
    }
  }
  syncBuiltinESMExports()
}
