import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pruneMediaQuality } from '../core/state/media-quality.ts'
import { unfinishedRecordings, updateRecording } from '../core/state/recordings.ts'
import { pruneRegistrations } from '../core/state/registrations.ts'
import { type AlsoAtEnd, callsOfNode, endLostCall } from '../core/state/running-calls.ts'
import type { AdmissionGate } from './admission/gate.ts'
import type { Context } from './b2bua/context.ts'
import { MediaRefusal } from './b2bua/media.ts'

/**
 * Recordings whose end nobody told: their worker or node was killed. The worker mends the file's header and says what
 * is in it; a file that is not there makes the recording absent (design section 8, "recordings finalised").
 */
export async function finishLeftRecordings(ctx: Context): Promise<number> {
  if (!ctx.media.connected) return 0
  const rows = await unfinishedRecordings(ctx.state.db)
  let finished = 0
  for (const row of rows) {
    // A recording of a call that has just ended is still being closed by its own worker.
    if (ctx.calls.get(row.call_sid) || ctx.media.listens(row.sid)) continue
    try {
      const file = join(ctx.config.data_dir, row.file)
      const found = await ctx.media.request('record.inspect', { file })
      const { duration_ms, bytes, sha256 } = found
      await updateRecording(ctx.state.db, row.sid, { status: 'completed', duration_ms, bytes, sha256 }, ctx.clock.now())
    } catch (error) {
      if (!(error instanceof MediaRefusal) || error.reason === 'media_unavailable') throw error
      await updateRecording(ctx.state.db, row.sid, { status: 'absent' }, ctx.clock.now())
    }
    finished++
  }
  if (finished > 0) ctx.log.info({ recordings: finished }, 'recordings left by a crash were finished')
  return finished
}

/** Slots and money go back with the record of a lost call: both or neither. */
export const giveBack =
  (gate: AdmissionGate): AlsoAtEnd =>
  async (trx, row) => {
    const { sid: call_sid, answered_at } = row
    await gate.release(trx, { call_sid, duration_seconds: row.duration_seconds ?? 0, answered: answered_at !== null })
  }

/** So many sweeps of 5 s a call may be between its row and its owner. */
const LOOKS = 3

/**
 * Calls of this node that nobody runs: their row was written, and what came next failed (storage went away between two
 * writes). They are ended, so that nothing stays in progress and nothing stays taken (design section 8).
 */
export class UnownedCalls {
  #looks = new Map<string, number>()

  /** `held`: whether a call waits somewhere for its turn. Returns how many were ended. */
  async sweep(ctx: Context, held: (sid: string) => boolean): Promise<number> {
    const looks = new Map<string, number>()
    let ended = 0
    for (const row of await callsOfNode(ctx.state.db, ctx.node_id)) {
      if (ctx.calls.get(row.sid) || held(row.sid)) continue
      const seen = (this.#looks.get(row.sid) ?? 0) + 1
      looks.set(row.sid, seen)
      if (seen < LOOKS) continue
      await endLostCall(ctx.state, row, { cause: 'internal', ended_ms: ctx.clock.now() }, giveBack(ctx.gate))
      ctx.log.error({ call_id: row.sid }, 'a call without an owner was ended')
      ended++
    }
    this.#looks = looks
    return ended
  }
}

const DAY_MS = 86_400_000
const MEDIA_QUALITY_DAYS = 30

/** Removes what has been kept for its time: logs of runs, samples of media quality, registrations that have ended. */
export async function prune(ctx: Context): Promise<void> {
  const now_ms = ctx.clock.now()
  await pruneRegistrations(ctx.state.db, now_ms)
  await pruneMediaQuality(ctx.state.db, now_ms - MEDIA_QUALITY_DAYS * DAY_MS)
  await pruneRunLogs(join(ctx.config.data_dir, 'runs'), now_ms - ctx.config.run_log_days * DAY_MS)
}

/** By the time of their last line. */
export async function pruneRunLogs(folder: string, before_ms: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name)
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (mtimeMs < before_ms) await rm(file, { force: true })
  }
}
