import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { StoreError } from '../../core/runtime/s3-requests.ts'
import type { RecordingRow } from '../../core/state/calls/calls.ts'
import { openRecording } from '../../core/state/calls/recording-file.ts'
import { Refused, refuse } from '../http/reply.ts'
import type { Services } from '../http/services.ts'
import { partOf } from './range.ts'

interface Sent<S extends number> {
  readonly status: S
  readonly headers: Readonly<Record<string, string>>
  readonly stream?: Readable
}

type AudioAnswer = Sent<200> | Sent<206> | Sent<416>

/**
 * Returns the audio of a finished recording, whole or one range; null when its file is missing. HEAD gets only headers.
 * @throws Refused when the object store does not answer
 */
export async function recordingAudio(
  services: Services,
  row: RecordingRow,
  request: Pick<IncomingMessage, 'headers' | 'method'>,
): Promise<AudioAnswer | null> {
  const file = await openRecording(services, row.file).catch((err: unknown) => {
    services.log.warn({ err, recording: row.sid }, 'the file of a recording cannot be read')
    if (err instanceof StoreError && err.status !== 404)
      throw new Refused(refuse('recording_unavailable', { value: row.sid }))
    return null
  })
  if (!file) return null
  const { bytes } = file
  // The tag is of the content, not of the file, so that encryption does not change it.
  const etag = `"${row.sha256 ?? `${row.sid}-${bytes}`}"`
  const part = partOf(request.headers.range, request.headers['if-range'] as string | undefined, { bytes, etag })
  const headers = {
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-store',
    ETag: etag,
    'Last-Modified': new Date(row.updated_at).toUTCString(),
  }
  if (part.kind === 'unsatisfiable') {
    await file.close()
    return { status: 416, headers: { ...headers, 'Content-Range': `bytes */${bytes}`, 'Content-Length': '0' } }
  }
  const [first, last] = part.kind === 'part' ? [part.first, part.last] : [0, bytes - 1]
  const sent = { ...headers, 'Content-Type': 'audio/wav', 'Content-Length': String(last - first + 1) }
  const wanted = request.method !== 'HEAD' && last >= first
  if (!wanted) await file.close()
  const audio = wanted ? { stream: file.stream(first, last) } : {}
  if (part.kind === 'whole') return { status: 200, headers: sent, ...audio }
  return { status: 206, headers: { ...sent, 'Content-Range': `bytes ${first}-${last}/${bytes}` }, ...audio }
}
