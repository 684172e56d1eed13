import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ScriptStep, stepsOf } from '../../core/domain/calls/script-steps.ts'
import { MachineFileError, type MachineFiles } from '../../core/runtime/machine-files.ts'
import type { Db } from '../../core/state/index.ts'
import { machinesOfCall } from '../../core/state/nodes/edge-links.ts'

/** Runs of one call that are read: its own, whispers and waits. */
const MAX_RUNS = 20
const MAX_STEPS = 1000

/** Where the logs of runs are. */
export interface RunLogs {
  readonly data_dir: string
  /** The files of the other machines; null or undefined: there are none. */
  readonly machines?: MachineFiles | null | undefined
}

/** The run logs of a call on one machine. Returns the text of a log; null when that machine does not have it. */
type Reader = (file: string) => Promise<string | null>

/**
 * Reads the steps of a call's scripts from the logs of their runs, in the order of time. They are on the machine that
 * ran the call. Empty when no log is kept. When a machine that may have them does not answer, a step says so.
 */
export async function readSteps(
  db: Db,
  logs: RunLogs,
  call: { readonly sid: string; readonly node_id: string | null; readonly queued_at: string },
): Promise<ScriptStep[]> {
  const here = await stepsBy(file => readFile(join(logs.data_dir, file), 'utf8').catch(absent), call.sid)
  const { machines } = logs
  if (here.length > 0 || !machines) return here
  for (const machine_id of await machinesOfCall(db, call.node_id, machines.own_id))
    try {
      const there = await stepsBy(
        async file => String((await machines.whole(machine_id, file)) ?? '') || null,
        call.sid,
      )
      if (there.length > 0) return there
    } catch (error) {
      if (!(error instanceof MachineFileError)) throw error
      return [{ at: call.queued_at, detail: { verb: 'Steps', text: `cannot be read: ${error.message}` } }]
    }
  return []
}

async function stepsBy(read: Reader, call_sid: string): Promise<ScriptStep[]> {
  const steps: ScriptStep[] = []
  for (let run = 1; run <= MAX_RUNS && steps.length < MAX_STEPS; run++) {
    const log = await read(`runs/${call_sid}-${run}.jsonl`)
    if (log === null) break
    steps.push(...stepsOf(log))
  }
  return steps.slice(0, MAX_STEPS).sort((a, b) => a.at.localeCompare(b.at))
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
