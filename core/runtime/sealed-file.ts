import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { type FileHandle, rename, rm } from 'node:fs/promises'
import { newPlainFile, openPlainFile } from './plain-file.ts'

/**
 * Files encrypted at rest, readable from any byte. A header of 40 bytes is followed by chunks of 64 KiB (the last one
 * shorter). Each chunk is encrypted with AES-256-GCM and followed by its tag.
 *
 *     0               8               12              16              24                              40
 *     | "STRWSEAL"    | version 1     | chunk bytes   | plain bytes   | salt (16)                     |
 *
 * The key of a file is HKDF-SHA256 (RFC 5869) of the installation's key and the salt, so the chunk's number can be its
 * nonce. Every chunk authenticates the header, so no chunk can be cut off, moved or taken from another file.
 */
const MAGIC = Buffer.from('STRWSEAL')
const HEADER_BYTES = 40
const CHUNK_BYTES = 64 * 1024
const TAG_BYTES = 16

const fileKey = (key: Buffer, salt: Buffer): Buffer => Buffer.from(hkdfSync('sha256', key, salt, 'strowger file', 32))

function nonce(chunk: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeBigUInt64BE(BigInt(chunk), 4)
  return bytes
}

/** Encrypts `from` into `to` atomically and keeps `from`. Returns the size of the content in bytes. */
export async function sealFile(key: Buffer, from: string, to: string): Promise<number> {
  const unfinished = `${to}.part`
  const source = await openPlainFile(from)
  try {
    const target = await newPlainFile(unfinished)
    try {
      const bytes = await writeSealed(key, source, target)
      await target.sync()
      await rename(unfinished, to)
      return bytes
    } finally {
      await target.close()
    }
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  } finally {
    await source.close()
  }
}

async function writeSealed(key: Buffer, source: FileHandle, target: FileHandle): Promise<number> {
  const { size } = await source.stat()
  const header = Buffer.alloc(HEADER_BYTES)
  MAGIC.copy(header)
  header.writeUInt32BE(1, 8)
  header.writeUInt32BE(CHUNK_BYTES, 12)
  header.writeBigUInt64BE(BigInt(size), 16)
  const salt = randomBytes(16)
  salt.copy(header, 24)
  await target.write(header)
  const own_key = fileKey(key, salt)
  for (let chunk = 0; chunk * CHUNK_BYTES < size; chunk++) {
    const plain = await readExactly(source, chunk * CHUNK_BYTES, Math.min(CHUNK_BYTES, size - chunk * CHUNK_BYTES))
    const cipher = createCipheriv('aes-256-gcm', own_key, nonce(chunk)).setAAD(header)
    await target.write(Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]))
  }
  return size
}

/** A source of sealed bytes. */
export interface ByteSource {
  /** Reads exactly `length` bytes. @throws when there are fewer, or the source fails */
  read(position: number, length: number): Promise<Buffer>
  close(): Promise<void>
}

export async function fileSource(path: string): Promise<ByteSource> {
  const handle = await openPlainFile(path)
  return { read: (position, length) => readExactly(handle, position, length), close: () => handle.close() }
}

interface SealedFile {
  /** Size of the content. */
  readonly bytes: number
  /** Yields the content from `first` to `last` inclusive, then closes the source. @throws at a modified chunk */
  read(first: number, last: number): AsyncGenerator<Buffer>
  close(): Promise<void>
}

/** Reads the header of a sealed file. Closes the source and throws when the file is not a sealed one. */
export async function openSealed(key: Buffer, source: ByteSource): Promise<SealedFile> {
  try {
    const header = await source.read(0, HEADER_BYTES)
    if (!header.subarray(0, 8).equals(MAGIC) || header.readUInt32BE(8) !== 1 || header.readUInt32BE(12) !== CHUNK_BYTES)
      throw new Error('not a sealed file of a known version')
    const bytes = Number(header.readBigUInt64BE(16))
    const own_key = fileKey(key, header.subarray(24))
    return {
      bytes,
      close: () => source.close(),
      async *read(first, last) {
        try {
          for (let chunk = Math.floor(first / CHUNK_BYTES); chunk * CHUNK_BYTES <= last; chunk++) {
            const begin = chunk * CHUNK_BYTES
            const plain = await readChunk(source, {
              header,
              own_key,
              chunk,
              length: Math.min(CHUNK_BYTES, bytes - begin),
            })
            yield plain.subarray(Math.max(0, first - begin), Math.min(plain.length, last - begin + 1))
          }
        } finally {
          await source.close()
        }
      },
    }
  } catch (error) {
    await source.close()
    throw error
  }
}

async function readChunk(
  source: ByteSource,
  at: { readonly header: Buffer; readonly own_key: Buffer; readonly chunk: number; readonly length: number },
): Promise<Buffer> {
  const offset = HEADER_BYTES + at.chunk * (CHUNK_BYTES + TAG_BYTES)
  const sealed = await source.read(offset, at.length + TAG_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', at.own_key, nonce(at.chunk)).setAAD(at.header)
  decipher.setAuthTag(sealed.subarray(at.length))
  return Buffer.concat([decipher.update(sealed.subarray(0, at.length)), decipher.final()])
}

async function readExactly(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, position + filled)
    if (bytesRead === 0) throw new Error('the file is shorter than it says')
    filled += bytesRead
  }
  return buffer
}
