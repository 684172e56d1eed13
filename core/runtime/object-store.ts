import { createHash } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import type { S3Config } from './config.ts'
import { createHttpClient, type HttpAnswer } from './http/index.ts'
import type { Log } from './log.ts'
import { openPlainFile } from './plain-file.ts'
import type { ByteSource } from './sealed-file.ts'

/**
 * Files in a bucket of an S3-compatible store (AWS S3, MinIO, Ceph, …): requests of the S3 REST API, path style, signed
 * with Signature Version 4.
 */
export interface ObjectStore {
  /** Uploads a file, whole or not at all. @throws StoreError */
  put(key: string, path: string): Promise<void>
  /** The object's bytes, fetched as they are read. Nothing is asked for yet. */
  source(key: string): ByteSource
  /** Removes an object; one that is not there is removed. @throws StoreError */
  remove(key: string): Promise<void>
  close(): Promise<void>
}

/** The store did not do what it was asked for; `status` is its answer, null when there was none. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly status: number | null
  constructor(status: number | null, detail: string) {
    super(detail)
    this.status = status
  }
}

/** Whoever runs the platform names the store: it may be anywhere, as its own machine. */
const EVERYWHERE = ['0.0.0.0/0', '::/0']
/** Files over this are uploaded in parts of it: memory is bounded, and a broken connection costs one part. */
const PART_BYTES = 8 * 1024 * 1024
/** What is fetched ahead of a reader: little at first, because many want the head alone. */
const FIRST_BLOCK_BYTES = 128 * 1024
const BLOCK_BYTES = 1024 * 1024
const TIMES = { connect_timeout_ms: 5_000, read_timeout_ms: 30_000, total_timeout_ms: 120_000 } as const

interface Sent {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly max_bytes?: number
}

export function createObjectStore(config: S3Config, log: Log): ObjectStore {
  const http = createHttpClient({ allow_private: EVERYWHERE, user_agent: 'Strowger/0.1', log })

  /** @throws StoreError unless the answer is 2xx */
  async function send({ method, key, query = {}, headers = {}, body, max_bytes }: Sent): Promise<HttpAnswer> {
    const url = new URL(`${config.endpoint}/${config.bucket}/${key.split('/').map(encodeURIComponent).join('/')}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const signed = await new AwsV4Signer({
      method,
      url: url.href,
      headers: {
        ...headers,
        'x-amz-content-sha256': createHash('sha256')
          .update(body ?? '')
          .digest('hex'),
      },
      service: 's3',
      region: config.region,
      accessKeyId: config.access_key,
      secretAccessKey: config.secret_key,
    }).sign()
    const reply = await http.request({
      url: signed.url.href,
      method,
      headers: { ...Object.fromEntries(signed.headers), 'accept-encoding': 'identity' },
      // A redirect leads to where the signature does not hold.
      max_redirects: 0,
      replayable: true,
      ...TIMES,
      ...(body === undefined ? {} : { body }),
      ...(max_bytes === undefined ? {} : { max_bytes }),
    })
    if (!reply.ok) throw new StoreError(null, reply.detail)
    const text = method === 'GET' && reply.status < 300 ? '' : reply.body.toString()
    // Completing an upload may fail after its 200 was sent.
    if (reply.status < 200 || reply.status > 299 || text.includes('<Error>')) {
      const said = /<Code>([^<]{1,100})</.exec(text)?.[1]
      throw new StoreError(reply.status, `${method} was answered ${reply.status}${said ? ` ${said}` : ''}`)
    }
    return reply
  }

  async function putParts(key: string, parts: AsyncIterable<Buffer>): Promise<void> {
    const begun = await send({ method: 'POST', key, query: { uploads: '' } })
    const uploadId = /<UploadId>([^<]+)<\/UploadId>/.exec(begun.body.toString())?.[1]
    if (!uploadId) throw new StoreError(begun.status, 'an upload in parts was begun without an id')
    try {
      const tags: string[] = []
      for await (const body of parts) {
        const query = { partNumber: String(tags.length + 1), uploadId }
        tags.push((await send({ method: 'PUT', key, query, body })).headers['etag'] ?? '')
      }
      const list = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
      const body = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
      await send({ method: 'POST', key, query: { uploadId }, body })
    } catch (error) {
      // Parts that nobody completes are paid for until somebody looks.
      await send({ method: 'DELETE', key, query: { uploadId } }).catch(err =>
        log.debug({ err, key }, 'an upload in parts was not taken back'),
      )
      throw error
    }
  }

  return {
    async put(key, path) {
      const file = await openPlainFile(path)
      try {
        const { size } = await file.stat()
        const part = async (at: number): Promise<Buffer> => {
          const buffer = Buffer.alloc(Math.min(PART_BYTES, size - at))
          const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
          if (bytesRead !== buffer.length) throw new Error(`${path} has changed while it was uploaded`)
          return buffer
        }
        if (size <= PART_BYTES) {
          await send({ method: 'PUT', key, body: await part(0) })
          return
        }
        async function* parts(): AsyncGenerator<Buffer> {
          for (let at = 0; at < size; at += PART_BYTES) yield await part(at)
        }
        await putParts(key, parts())
      } finally {
        await file.close()
      }
    },

    source: key => {
      let block: { at: number; bytes: Buffer } = { at: 0, bytes: Buffer.alloc(0) }
      return {
        async read(position, length) {
          const from = position - block.at
          if (from >= 0 && from + length <= block.bytes.length) return block.bytes.subarray(from, from + length)
          const wanted = Math.max(length, position === 0 ? FIRST_BLOCK_BYTES : BLOCK_BYTES)
          const headers = { range: `bytes=${position}-${position + wanted - 1}` }
          const reply = await send({ method: 'GET', key, headers, max_bytes: wanted })
          if (reply.status !== 206) throw new StoreError(reply.status, `a range was answered ${reply.status}`)
          if (reply.body.length < length) throw new StoreError(reply.status, 'the object is shorter than it says')
          block = { at: position, bytes: reply.body }
          return reply.body.subarray(0, length)
        },
        close: async () => undefined,
      }
    },

    async remove(key) {
      await send({ method: 'DELETE', key }).catch((error: unknown) => {
        if (!(error instanceof StoreError && error.status === 404)) throw error
      })
    },

    close: () => http.close(),
  }
}
