import { Transform, type TransformCallback, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { Failure } from './failure.ts'

interface BodyLimits {
  readonly max_bytes: number
  /** Called for each chunk that arrives. */
  readonly touched: () => void
}

/** Pipes a response body into `sink`. Fails when it exceeds `max_bytes`, either as received or after decoding. */
export async function readBody(
  source: NodeJS.ReadableStream,
  encoding: string | undefined,
  limits: BodyLimits,
  sink: NodeJS.WritableStream,
): Promise<void> {
  const arriving = counter(limits.max_bytes, limits.touched)
  const coding = encoding?.trim().toLowerCase() ?? ''
  if (coding === '' || coding === 'identity') return pipeline(source, arriving, sink)
  return pipeline(
    source,
    arriving,
    decoder(coding),
    counter(limits.max_bytes, () => undefined),
    sink,
  )
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
      if (bytes > max_bytes) done(new Failure('too_large', `more than ${max_bytes} bytes`))
      else done(null, chunk)
    },
  })
}

/**
 * Returns the decoder of one content coding (RFC 9110 §8.4.1). Its output arrives in pieces, so the counter after it
 * stops a decompression bomb.
 */
function decoder(coding: string): Transform {
  if (coding === 'gzip' || coding === 'x-gzip') return createGunzip()
  if (coding === 'br') return createBrotliDecompress()
  if (coding === 'deflate') return inflateEither()
  throw new Failure('protocol', `content coding ${JSON.stringify(coding.slice(0, 40))} was not asked for`)
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
