import { Transform, type TransformCallback, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { HttpError } from './failure.ts'

interface BodyLimits {
  readonly max_bytes: number
  /** Called for each chunk that arrives. */
  readonly touched: () => void
}

/** Pipes a response body into `sink`. Fails when it exceeds `max_bytes`, either as received or after decoding. */
export async function pipeBody(
  source: NodeJS.ReadableStream,
  encoding: string | undefined,
  limits: BodyLimits,
  sink: NodeJS.WritableStream,
): Promise<void> {
  const arriving = counter(limits.max_bytes, limits.touched)
  const decoding = decoders(encoding ?? '').flatMap(decoder => [decoder, counter(limits.max_bytes, () => undefined)])
  await pipeline([source, arriving, ...decoding, sink])
}

/** Returns a sink that collects its input. Call `bytes()` after the pipeline has ended. */
export function memorySink(): Writable & { bytes(): Buffer } {
  const chunks: Buffer[] = []
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      done()
    },
  })
  return Object.assign(sink, { bytes: () => Buffer.concat(chunks) })
}

function counter(max_bytes: number, touched: () => void): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      touched()
      if (bytes > max_bytes) done(new HttpError('too_large', `more than ${max_bytes} bytes`))
      else done(null, chunk)
    },
  })
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
  deflate: inflateEither,
}
/** The other codings of IANA's registry. We ask for none (`identity`) and cannot decode these. */
const UNREADABLE = new Set(['compress', 'x-compress', 'zstd', 'dcb', 'dcz', 'exi', 'aes128gcm', 'pack200-gzip'])
const MAX_CODINGS = 3

/**
 * Returns the decoders of a Content-Encoding, the coding that was applied last first (RFC 9110 §8.4). A name that is no
 * content coding (`utf-8`, `none`) says nothing about the bytes, so it is ignored. The output arrives in pieces, so the
 * counter after each decoder stops a decompression bomb.
 */
function decoders(encoding: string): Transform[] {
  const names = encoding.split(',').map(name => name.trim().toLowerCase())
  const unreadable = names.find(name => UNREADABLE.has(name))
  if (unreadable !== undefined) throw new HttpError('protocol', `content coding ${unreadable} was not asked for`)
  const codings = names.filter(name => Object.hasOwn(DECODERS, name))
  if (codings.length > MAX_CODINGS) throw new HttpError('protocol', `${codings.length} content codings on one body`)
  return codings.reverse().flatMap(name => DECODERS[name]?.() ?? [])
}

/** "deflate" means zlib (RFC 9110 §8.4.1.2), but some servers send a raw stream. The first byte distinguishes them. */
function inflateEither(): Transform {
  let inner: Transform | null = null
  const outer = new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      if (inner === null) {
        inner = ((chunk[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()
        inner.on('data', (piece: Buffer) => {
          if (!outer.push(piece)) inner?.pause()
        })
        inner.on('error', error => outer.destroy(error))
      }
      inner.write(chunk, error => done(error ?? null))
    },
    flush(done) {
      if (inner === null) return done()
      inner.once('end', () => done())
      inner.end()
    },
    read() {
      inner?.resume()
      Transform.prototype._read.call(outer, 0)
    },
    destroy(error, done) {
      inner?.destroy()
      done(error)
    },
  })
  return outer
}
