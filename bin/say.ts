import { StartRefused } from '../core/runtime/start-refused.ts'
import { ConfigError } from '../core/runtime/variable-values.ts'
import { StateError } from '../core/state/port.ts'
import { whyOfFile } from './files.ts'
import { complain, terminal } from './terminal.ts'

/** Runs a command. An expected refusal becomes one sentence and exit code 1; any other error is a bug and is thrown. */
export async function orSayWhy<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const sentence = sentenceOf(error)
    if (sentence === null) throw error
    complain(`strowger: ${sentence}\n`)
    return terminal().leave()
  }
}

/** The sentence of an expected refusal; null for a bug. */
export function sentenceOf(error: unknown): string | null {
  if (error instanceof ConfigError || error instanceof StartRefused) return error.message
  // A server that is away; SQLite's file never is without a fault of the disk, which is told in full.
  if (error instanceof StateError && error.code === 'NO_PRIMARY')
    return `the database cannot be reached: ${error.message}`
  const why = whyOfFile(error)
  return why !== null && error instanceof Error && 'path' in error ? `${error.path}: ${why}` : null
}
