// Runs the compiled test files named as arguments in this process, one after the other.
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runFiles } from './run.ts'
import { useBundledThreads } from './threads.ts'

// Most code of a test runs for a short time. By default V8 optimizes it so early that about a tenth of the CPU time
// goes into code that hardly runs. The platforms of tests keep the default.
setFlagsFromString('--interrupt-budget=1000000')

// The runner has just built the bundles.
useBundledThreads()

await runFiles(process.argv.slice(2).map(path => pathToFileURL(path).href))
