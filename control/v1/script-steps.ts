import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ScriptStep, stepsOf } from '../../core/domain/calls/script-steps.ts'

/** Runs of one call that are read: its own, whispers and waits. */
const MAX_RUNS = 20
const MAX_STEPS = 1000

/**
 * Reads the steps of a call's scripts from the logs of their runs, in the order of time. Empty when no log is kept, or
 * when another machine keeps it.
 */
export async function readSteps(data_dir: string, call_sid: string): Promise<ScriptStep[]> {
  const steps: ScriptStep[] = []
  for (let run = 1; run <= MAX_RUNS && steps.length < MAX_STEPS; run++) {
    const log = await readFile(join(data_dir, 'runs', `${call_sid}-${run}.jsonl`), 'utf8').catch(absent)
    if (log === null) break
    steps.push(...stepsOf(log))
  }
  return steps.slice(0, MAX_STEPS).sort((a, b) => a.at.localeCompare(b.at))
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
