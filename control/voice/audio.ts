import { type FileHandle, open } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { resolve, sep } from 'node:path'
import type { Readable } from 'node:stream'
import type { RecordingRow } from '../../core/state/calls.ts'
import type { Services } from '../http/services.ts'
import { partOf } from './range.ts'

interface Sent<S extends number> {
  readonly status: S
  readonly headers: Readonly<Record<string, string>>
  readonly stream?: Readable
}

export type AudioAnswer = Sent<200> | Sent<206> | Sent<416>

/**
 * The audio of a finished recording, whole or one range of it; null when its file is gone. HEAD gets the headers
 * alone.
 */
export async function recordingAudio(
  { settings, log }: Services,
  row: RecordingRow,
  request: IncomingMessage,
): Promise<AudioAnswer | null> {
  const handle = await openBelow(settings.data_dir, row.file).catch((err: unknown) => {
    log.warn({ err, recording: row.sid }, 'the file of a recording cannot be read')
    return null
  })
  if (!handle) return null
  const { size, mtimeMs } = await handle.stat()
  // The content's own hash where it is known: the tag outlives a restored backup.
  const etag = `"${row.sha256 ?? `${size}-${Math.floor(mtimeMs)}`}"`
  const part = partOf(request.headers.range, request.headers['if-range'] as string | undefined, { bytes: size, etag })
  const headers = {
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-store',
    ETag: etag,
    'Last-Modified': new Date(row.updated_at).toUTCString(),
  }
  if (part.kind === 'unsatisfiable') {
    await handle.close()
    return { status: 416, headers: { ...headers, 'Content-Range': `bytes */${size}`, 'Content-Length': '0' } }
  }
  const [first, last] = part.kind === 'part' ? [part.first, part.last] : [0, size - 1]
  const sent = { ...headers, 'Content-Type': 'audio/wav', 'Content-Length': String(last - first + 1) }
  const wanted = request.method !== 'HEAD' && last >= first
  if (!wanted) await handle.close()
  const audio = wanted ? { stream: streamOf(handle, first, last) } : {}
  if (part.kind === 'whole') return { status: 200, headers: sent, ...audio }
  return { status: 206, headers: { ...sent, 'Content-Range': `bytes ${first}-${last}/${size}` }, ...audio }
}

/** Opens a file below `folder`; the name comes from our own rows, and even so it must not lead out of there. */
async function openBelow(folder: string, file: string): Promise<FileHandle> {
  const path = resolve(folder, file)
  if (!path.startsWith(resolve(folder) + sep)) throw new Error('the file is outside the data folder')
  return open(path, 'r')
}

/** The handle closes with the stream, also when the client goes away. */
const streamOf = (handle: FileHandle, first: number, last: number): Readable =>
  handle.createReadStream({ start: first, end: last, autoClose: true })
