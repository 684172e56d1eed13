import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { partOf } from './range.ts'

/** The content of a file that is sent. */
interface SentFile {
  readonly bytes: number
  /** Reads from `first` to `last` inclusive. The file closes with the stream, also when the client disconnects. */
  stream(first: number, last: number): Readable
  close(): Promise<void>
}

interface Sent<S extends number> {
  readonly status: S
  readonly headers: Readonly<Record<string, string>>
  readonly stream?: Readable
}

export type FileAnswer = Sent<200> | Sent<206> | Sent<416>

/** Answers with a file, whole or one range. HEAD gets only headers. */
export async function fileAnswer(
  file: SentFile,
  about: {
    readonly type: string
    /** A strong tag of the content, with its quotes. */
    readonly etag: string
    readonly modified_at: string
    /** The name under which a browser saves it. */
    readonly filename?: string
  },
  request: Pick<IncomingMessage, 'headers' | 'method'>,
): Promise<FileAnswer> {
  const { bytes } = file
  const { type, etag, modified_at, filename } = about
  const part = partOf(request.headers.range, request.headers['if-range'] as string | undefined, { bytes, etag })
  const headers = {
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-store',
    ETag: etag,
    'Last-Modified': new Date(modified_at).toUTCString(),
    ...(filename === undefined ? {} : { 'Content-Disposition': `attachment; filename="${filename}"` }),
  }
  if (part.kind === 'unsatisfiable') {
    await file.close()
    return { status: 416, headers: { ...headers, 'Content-Range': `bytes */${bytes}`, 'Content-Length': '0' } }
  }
  const [first, last] = part.kind === 'part' ? [part.first, part.last] : [0, bytes - 1]
  const sent = { ...headers, 'Content-Type': type, 'Content-Length': String(last - first + 1) }
  const wanted = request.method !== 'HEAD' && last >= first
  if (!wanted) await file.close()
  const content = wanted ? { stream: file.stream(first, last) } : {}
  if (part.kind === 'whole') return { status: 200, headers: sent, ...content }
  return { status: 206, headers: { ...sent, 'Content-Range': `bytes ${first}-${last}/${bytes}` }, ...content }
}
