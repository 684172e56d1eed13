// Runs the compiled test files named as arguments in this process, one after the other.
import { pathToFileURL } from 'node:url'
import { runFiles } from './run.ts'
import { useBundledThreads } from './threads.ts'

// The runner has just built the bundles.
useBundledThreads()

await runFiles(process.argv.slice(2).map(path => pathToFileURL(path).href))
