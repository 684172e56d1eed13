import { Transform, type TransformCallback, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { Failure } from './failure.ts'

interface BodyLimits {
  readonly max_bytes: number
  /** Called at each piece that arrives. */
  readonly touched: () => void
}

/** Moves an answer's body into `sink`: counted as it arrives and again after decoding, cut at `max_bytes`. */
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

/** A sink that keeps what it is given; `bytes()` after the pipeline has ended. */
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
 * Decodes one content coding (RFC 9110 §8.4.1); its output is pulled in pieces, so a bomb is cut by the counter
 * behind.
 */
function decoder(coding: string): Transform {
  if (coding === 'gzip' || coding === 'x-gzip') return createGunzip()
  if (coding === 'br') return createBrotliDecompress()
  if (coding === 'deflate') return inflateEither()
  throw new Failure('protocol', `content coding ${JSON.stringify(coding.slice(0, 40))} was not asked for`)
}

/** "deflate" means zlib (RFC 9110 §8.4.1.2), but some servers send the raw stream: the first byte tells. */
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
