import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../core/runtime/ids.ts'
import { acceptRecordingConsent, TERMS_VERSION } from '../../core/state/calls/recording-consent.ts'
import { insertRecording } from '../../core/state/calls/recordings.ts'
import type { RecordingTable } from '../../core/state/index.ts'
import type { ControlPlane } from './control-plane.ts'
import { until } from './wait.ts'
import type { World } from './world.ts'

/** A tenth of a second of silence, 8 kHz mono PCM. */
export const WAV = wav(Buffer.alloc(1600))

/** A file of 16-bit samples as the media worker writes it. */
export function wav(samples: Buffer, { channels = 1, rate_hz = 8000 } = {}): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + samples.length, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(channels, 22)
  head.writeUInt32LE(rate_hz, 24)
  head.writeUInt32LE(rate_hz * channels * 2, 28)
  head.writeUInt16LE(channels * 2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(samples.length, 40)
  return Buffer.concat([head, samples])
}

/** Adds a call's recording with its file, as the media worker leaves it. Returns the recording's sid. */
export async function addRecording(
  w: ControlPlane,
  call_sid: string,
  status: RecordingTable['status'] = 'completed',
  content = WAV,
): Promise<string> {
  const sid = newId.recording()
  const file = `recordings/${sid}.wav`
  mkdirSync(join(w.settings.data_dir, 'recordings'), { recursive: true })
  writeFileSync(join(w.settings.data_dir, file), content)
  const now_ms = w.clock.now()
  const row = {
    sid,
    call_sid,
    project_id: w.demo.project_id,
    source: 'OutboundAPI',
    channels: 1,
    track: 'both' as const,
  }
  await insertRecording(w.state.db, { ...row, file, expires_at: null }, now_ms)
  const sha256 = createHash('sha256').update(content).digest('hex')
  const ended = { status, duration_ms: 100, bytes: content.length, sha256 }
  if (status !== 'in-progress') await w.state.db.updateTable('recording').set(ended).where('sid', '=', sid).execute()
  return sid
}

/**
 * Waits until the file of a call's recording holds sound. A recording that never held any is absent when the call ends,
 * however long it ran.
 */
export const recordsSound = (w: Pick<World, 'state' | 'data_dir'>, call_sid: string): Promise<unknown> =>
  until(`the recording of ${call_sid} holds sound`, async () => {
    const row = await w.state.db
      .selectFrom('recording')
      .select('file')
      .where('call_sid', '=', call_sid)
      .executeTakeFirst()
    const path = row && join(w.data_dir, row.file)
    return (
      path !== undefined &&
      existsSync(path) &&
      readFileSync(path)
        .subarray(WAV_HEAD)
        .some(byte => byte !== 0)
    )
  })
const WAV_HEAD = 44

/** Accepts the recording consent of the demo project. */
export const acceptConsent = ({ state, demo }: ControlPlane): Promise<unknown> =>
  state.transaction(trx =>
    acceptRecordingConsent(trx, {
      project_id: demo.project_id,
      accepted_at: new Date().toISOString(),
      accepted_by: 'x',
      terms_version: TERMS_VERSION,
    }),
  )
