import { callOf } from '../../bench/admission/data.ts'
import { admitCall } from '../../core/state/calls/running-calls.ts'
import { failure } from '../../core/state/index.ts'
import { COMMIT, Link } from '../../core/state/postgres/link.ts'
import { openPostgres } from '../../core/state/postgres/store.ts'
import { PATIENCE_MS } from './wait.ts'

// A process that writes to PostgreSQL and stops itself, as one without CPU does, when it begins to connect, or at a
// commit, before or after it has sent it. Its parent continues it.

type Request = Parameters<typeof admitCall>[1]['requests'][number]

export interface Writing {
  /** The statements are one that writes alone, a procedure, or those of a transaction. */
  readonly by: 'statement' | 'procedure' | 'transaction'
  readonly stops: 'before connecting' | 'before the commit' | 'after the commit was sent'
  readonly request: Request
}

/** Null: it was written. */
export type Outcome = { readonly failure: string | null }

/** Stops this process until somebody continues it. It does no more than the line that runs. */
const stop = (): void => void process.kill(process.pid, 'SIGSTOP')

const [, , database_url = ''] = process.argv
const state = await openPostgres({ database_url, busy_timeout_ms: PATIENCE_MS })
let stops: Writing['stops'] | null = null

/** Sends what ends with a commit or not. */
function sendOrStop<T>(is_commit: boolean, send: () => T): T {
  if (!is_commit || stops === null) return send()
  const before = stops === 'before the commit'
  stops = null
  if (before) stop()
  const sent = send()
  if (!before) stop()
  return sent
}

const { run, batch } = Link.prototype
Link.prototype.run = function (sql, values) {
  return sendOrStop(sql === COMMIT, () => run.call(this, sql, values))
}
Link.prototype.batch = function (statements) {
  return sendOrStop(statements.at(-1)?.sql === COMMIT, () => batch.call(this, statements))
}

async function write({ by, request }: Writing): Promise<void> {
  const { now_ms, call_sid } = request
  if (by === 'procedure')
    await admitCall(state.db, { call: callOf(request), requests: [request], verstat: null, now_ms })
  else if (by === 'statement') await state.db.updateTable('project').set({ name: call_sid }).execute()
  else await state.transaction(trx => trx.updateTable('project').set({ name: call_sid }).execute())
}

process.on('message', async (writing: Writing) => {
  stops = writing.stops
  if (stops === 'before connecting') {
    stops = null
    const opening = openPostgres({ database_url })
    setImmediate(stop)
    const outcome = await opening.then(
      opened => opened.close().then(() => null),
      error => failure(error) ?? String(error),
    )
    process.send?.({ failure: outcome } satisfies Outcome)
    return
  }
  const outcome = await write(writing).then(
    () => null,
    error => failure(error) ?? String(error),
  )
  process.send?.({ failure: outcome } satisfies Outcome)
})
process.once('disconnect', () => process.exit(0))
process.send?.('ready')
