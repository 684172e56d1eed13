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

/** Repairs a file if necessary and returns its properties; null when it is missing or not a WAV file. */
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
 * Repairs the recordings whose writer was killed: sets the lengths in the header to the size of the file. Returns the
 * repaired files. Files with a correct header stay unchanged. Call it only while nothing records in the folder.
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
    // Remove an incomplete sample at the end.
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
