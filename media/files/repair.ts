import { createHash } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { wavLayout } from './wav.ts'

interface Repaired {
  readonly file: string
  readonly duration_ms: number
}

const HEADER_BYTES = 512

interface Inspected {
  readonly duration_ms: number
  readonly bytes: number
  readonly sha256: string
  readonly channels: number
}

/** Mends a file if it needs that, and tells what it holds; null when it is no WAV file. */
export async function inspectRecording(path: string): Promise<Inspected | null> {
  if (!existsSync(path)) return null
  repairFile(path)
  const header = Buffer.alloc(HEADER_BYTES)
  const file = openSync(path, 'r')
  const read = readSync(file, header, 0, HEADER_BYTES, 0)
  const { size } = fstatSync(file)
  closeSync(file)
  const layout = wavLayout(header.subarray(0, read))
  if (!layout) return null
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  const frames = layout.data_bytes / (layout.channels * Math.max(1, layout.bits >> 3))
  return {
    duration_ms: Math.round((frames / layout.rate_hz) * 1000),
    bytes: size,
    sha256: hash.digest('hex'),
    channels: layout.channels,
  }
}

/**
 * Mends the headers of recordings whose writer was killed: the length in the header is set to what is in the file.
 * Returns the files that were mended; files whose header is right are left alone. Call it when nothing records there.
 */
export function repairRecordings(folder: string): Repaired[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return repairRecordings(path)
    return entry.isFile() && entry.name.endsWith('.wav') ? repairFile(path) : []
  })
}

function repairFile(path: string): Repaired[] {
  const file = openSync(path, 'r+')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    const bytes = fstatSync(file).size
    const layout = wavLayout(header.subarray(0, readSync(file, header, 0, HEADER_BYTES, 0)))
    if (!layout) return []
    const frame_bytes = layout.channels * Math.max(1, layout.bits >> 3)
    const data_bytes = Math.max(0, bytes - layout.data_at)
    const whole = data_bytes - (data_bytes % frame_bytes)
    if (layout.data_bytes === whole && header.readUInt32LE(4) === bytes - 8) return []
    // Half a sample at the end is of no use to anybody.
    ftruncateSync(file, layout.data_at + whole)
    writeUInt32(file, 4, layout.data_at + whole - 8)
    writeUInt32(file, layout.data_at - 4, whole)
    return [{ file: path, duration_ms: Math.round((whole / frame_bytes / layout.rate_hz) * 1000) }]
  } finally {
    closeSync(file)
  }
}

function writeUInt32(file: number, at: number, value: number): void {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  writeSync(file, bytes, 0, 4, at)
}
