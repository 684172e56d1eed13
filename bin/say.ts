import { StartRefused } from '../core/runtime/start-refused.ts'
import { ConfigError } from '../core/runtime/variable-values.ts'

/** Runs a command. An expected refusal becomes one sentence and exit code 1; any other error is a bug and is thrown. */
export async function orSayWhy<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof StartRefused)) throw error
    process.stderr.write(`strowger: ${error.message}\n`)
    process.exit(1)
  }
}
