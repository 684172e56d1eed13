import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { DATABASE_FILE } from '../../core/state/index.ts'
import { ask } from '../set-up.ts'
import type { Made } from '../up.ts'

/** No machine has this id, so the job waits for one that has. */
const ELSEWHERE = 'bench'

interface Progress {
  readonly state: 'queued' | 'running' | 'completed' | 'failed' | 'deleted'
  readonly rows: number
  readonly bytes: number
}

/** An export that the benchmark interrupts. It reads the rows itself: a request costs the process that exports time. */
export interface Job {
  progress(): Progress
  pause(): void
  goOn(): void
  close(): void
}

/** Begins an export of all calls of the project. It waits until it is told to go on. */
export async function beginJob(folder: string, by: Made): Promise<Job> {
  const db = new Database(join(folder, DATABASE_FILE), { timeout: 5000 })
  const { id } = await ask(by, '/exports', { format: 'csv' }, { 'idempotency-key': randomUUID() })
  const select = db.prepare('select state, rows, bytes, error, machine_id from call_export where id = ?')
  const { machine_id } = select.get(id) as { machine_id: string }
  const update = db.prepare('update call_export set machine_id = ? where id = ?')
  const job: Job = {
    progress() {
      const { error, ...row } = select.get(id) as Progress & { readonly error: string | null }
      if (error !== null) throw new Error(error)
      return row
    },
    pause: () => void update.run(ELSEWHERE, id),
    goOn: () => void update.run(machine_id, id),
    close: () => void db.close(),
  }
  job.pause()
  return job
}
