import type { FileHandle } from 'node:fs/promises'
import { escapeXml } from '../domain/text/xml.ts'
import type { S3Config } from './config.ts'
import type { Log } from './log.ts'
import { openPlainFile } from './plain-file.ts'
import { createS3Requests, type S3Requests, StoreError, s3Document } from './s3-requests.ts'
import type { ByteSource } from './sealed-file.ts'

/** Files in a bucket of an S3-compatible store (AWS S3, MinIO, Ceph, …). */
export interface ObjectStore {
  /** Uploads a file atomically. @throws StoreError */
  put(key: string, path: string): Promise<void>
  /** Returns the object's bytes as a source, which requests them only when they are read. */
  source(key: string): ByteSource
  /** Removes an object. Succeeds when there is none. @throws StoreError */
  remove(key: string): Promise<void>
  close(): Promise<void>
}

/** Larger files are uploaded in parts of this size. This bounds memory, and a broken connection costs one part. */
const PART_BYTES = 8 * 1024 * 1024
/** Sizes of the blocks to read ahead. The first is small, because many readers need only the head. */
const FIRST_BLOCK_BYTES = 128 * 1024
const BLOCK_BYTES = 1024 * 1024

export function createObjectStore(config: S3Config, log: Log): ObjectStore {
  const store = createS3Requests(config, log)
  return {
    async put(key, path) {
      const file = await openPlainFile(path)
      try {
        const { size } = await file.stat()
        const parts = partsOf(file, path, size)
        if (size <= PART_BYTES) await putWhole(store, key, parts)
        else await putParts(store, key, parts, log)
      } finally {
        await file.close()
      }
    },
    source: key => objectSource(store, key),
    async remove(key) {
      await store.send({ method: 'DELETE', key }).catch((error: unknown) => {
        if (!(error instanceof StoreError && error.status === 404)) throw error
      })
    },
    close: () => store.close(),
  }
}

/** Yields the bytes of a file in parts, at least one. */
async function* partsOf(file: FileHandle, path: string, size: number): AsyncGenerator<Buffer> {
  let at = 0
  do {
    const buffer = Buffer.alloc(Math.min(PART_BYTES, size - at))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
    if (bytesRead !== buffer.length) throw new Error(`${path} has changed while it was uploaded`)
    yield buffer
    at += buffer.length
  } while (at < size)
}

async function putWhole(store: S3Requests, key: string, parts: AsyncIterable<Buffer>): Promise<void> {
  for await (const body of parts) await store.send({ method: 'PUT', key, body })
}

async function putParts(store: S3Requests, key: string, parts: AsyncIterable<Buffer>, log: Log): Promise<void> {
  const begun = await store.send({ method: 'POST', key, query: { uploads: '' } })
  const uploadId = s3Document(begun.body.toString())?.fields['UploadId']
  if (!uploadId) throw new StoreError(begun.status, 'an upload in parts was begun without an id')
  try {
    const tags: string[] = []
    for await (const body of parts) {
      const query = { partNumber: String(tags.length + 1), uploadId }
      tags.push((await store.send({ method: 'PUT', key, query, body })).headers['etag'] ?? '')
    }
    await store.send({ method: 'POST', key, query: { uploadId }, body: completion(tags) })
  } catch (error) {
    // The store charges for the parts of an incomplete upload.
    await store
      .send({ method: 'DELETE', key, query: { uploadId } })
      .catch(err => log.debug({ err, key }, 'an upload in parts was not aborted'))
    throw error
  }
}

function completion(tags: readonly string[]): Buffer {
  const list = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escapeXml(tag)}</ETag></Part>`)
  return Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
}

function objectSource(store: S3Requests, key: string): ByteSource {
  let block: { at: number; bytes: Buffer } = { at: 0, bytes: Buffer.alloc(0) }
  return {
    async read(position, length) {
      const from = position - block.at
      if (from >= 0 && from + length <= block.bytes.length) return block.bytes.subarray(from, from + length)
      const wanted = Math.max(length, position === 0 ? FIRST_BLOCK_BYTES : BLOCK_BYTES)
      const headers = { range: `bytes=${position}-${position + wanted - 1}` }
      const reply = await store.send({ method: 'GET', key, headers, max_bytes: wanted })
      if (reply.status !== 206) throw new StoreError(reply.status, `a range was answered ${reply.status}`)
      if (reply.body.length < length) throw new StoreError(reply.status, 'the object is shorter than it says')
      block = { at: position, bytes: reply.body }
      return reply.body.subarray(0, length)
    },
    close: async () => undefined,
  }
}
