import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, stat, unlink } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import type { SinkFactory } from './hop.ts'
import { DOWNLOAD_LIMITS, withDefaults } from './limits.ts'
import type { DownloadRequest, DownloadResult, HttpAnswer, HttpFailure, HttpLimits, HttpRequest } from './types.ts'

/** The result of an exchange. `content` is the sink's result, or null when the body was dropped. */
export type DownloadOutcome<T> = (Omit<HttpAnswer, 'body'> & { readonly content: T | null }) | HttpFailure
type Run = <T>(request: HttpRequest, limits: HttpLimits, sink: SinkFactory<T>) => Promise<DownloadOutcome<T>>

/** Downloads by GET into a file. Only a complete 200 response replaces the file. */
export async function download(request: DownloadRequest, run: Run): Promise<DownloadResult> {
  const part = `${request.file}.${randomBytes(6).toString('hex')}.part`
  const sink: SinkFactory<number> = answer => {
    if (answer.status !== 200) return null
    const stream = createWriteStream(part, { flags: 'wx', mode: 0o640 })
    return {
      stream,
      async finish() {
        const { size } = await stat(part)
        await rename(part, request.file)
        return size
      },
      async discard() {
        stream.destroy()
        // While the part is being opened it is not there to be removed yet. The stream ends early in any case.
        await finished(stream).catch(() => undefined)
        // The part does not exist when opening it failed.
        await unlink(part).catch(() => undefined)
      },
    }
  }
  const validators = {
    ...(request.etag ? { 'if-none-match': request.etag } : {}),
    ...(request.last_modified ? { 'if-modified-since': request.last_modified } : {}),
  }
  const headers = { ...request.headers, ...validators }
  const result = await run({ ...request, headers, method: 'GET' }, withDefaults(request, DOWNLOAD_LIMITS), sink)
  if (!result.ok) return result
  const { content, ...answer } = result
  return {
    ...answer,
    saved: content !== null,
    bytes: content ?? 0,
    etag: answer.headers['etag'] ?? null,
    last_modified: answer.headers['last-modified'] ?? null,
    content_type: answer.headers['content-type'] ?? null,
  }
}
