import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pruneMediaQuality } from '../core/state/calls/media-quality.ts'
import { unfinishedRecordings, updateRecording } from '../core/state/calls/recordings.ts'
import { pruneRegistrations } from '../core/state/calls/registrations.ts'
import { pruneNonceClaims } from '../core/state/nodes/nonce-claims.ts'
import type { CallContext } from './b2bua/context.ts'
import { MediaRefusal } from './b2bua/media.ts'

/**
 * Finishes recordings whose worker or node was killed before it reported their end. The worker repairs the file's
 * header and reports the contents. A missing file makes the recording absent (design section 8, "recordings
 * finalised").
 */
export async function finishLeftRecordings(ctx: CallContext): Promise<number> {
  if (!ctx.media.connected) return 0
  const rows = await unfinishedRecordings(ctx.state.db, ctx)
  let finished = 0
  for (const row of rows) {
    // Skip recordings that their own call or worker will still finish.
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

const DAY_MS = 86_400_000
const MEDIA_QUALITY_DAYS = 30

/** Removes expired data: run logs, media quality samples, registrations and claims of nonces. */
export async function prune(ctx: CallContext, goesOn: () => boolean): Promise<void> {
  const now_ms = ctx.clock.now()
  await pruneRegistrations(ctx.state.db, now_ms)
  await pruneNonceClaims(ctx.state.db, now_ms)
  await pruneMediaQuality(ctx.state, now_ms - MEDIA_QUALITY_DAYS * DAY_MS, goesOn)
  await pruneRunLogs(join(ctx.config.data_dir, 'runs'), now_ms - ctx.config.run_log_days * DAY_MS)
}

/** Removes run logs whose last line is older than `before_ms`. */
async function pruneRunLogs(folder: string, before_ms: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name)
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (mtimeMs < before_ms) await rm(file, { force: true })
  }
}
