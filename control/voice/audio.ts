import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { machineOf } from '../../core/runtime/machine.ts'
import { MachineFileError } from '../../core/runtime/machine-files.ts'
import { StoreError } from '../../core/runtime/s3-requests.ts'
import type { RecordingRow } from '../../core/state/calls/calls.ts'
import { openRecording } from '../../core/state/calls/recording-file.ts'
import { type FileAnswer, fileAnswer } from '../http/file-answer.ts'
import { Refused, refuse } from '../http/reply.ts'
import type { HttpServices, Services } from '../http/services.ts'
import { mp3File } from '../mp3/file.ts'
import { mp3Shape, WAV_HEAD_BYTES } from '../mp3/shape.ts'

type Asked = Pick<IncomingMessage, 'headers' | 'method'>

/**
 * Returns the audio of a finished recording, whole or one range; null when its file is missing. HEAD gets only headers.
 * @throws Refused when the object store does not answer, or when another machine has the file
 */
export async function recordingAudio(services: Services, row: RecordingRow, asked: Asked): Promise<FileAnswer | null> {
  const file = await opened(services, row)
  return file && fileAnswer(file, { type: 'audio/wav', ...validators(row, file.bytes) }, asked)
}

/**
 * Returns the audio of a finished recording as MP3, as `recordingAudio` does.
 * @throws Refused as `recordingAudio`, and when it is too long or the project has as many downloads as it may
 */
export async function recordingMp3(
  services: HttpServices,
  row: RecordingRow,
  asked: Asked,
): Promise<FileAnswer | null> {
  const file = await opened(services, row)
  if (!file) return null
  const shape = mp3Shape(await headOf(file), file.bytes)
  if (!shape) {
    services.log.warn({ recording: row.sid }, 'the file of a recording cannot be converted to MP3')
    return null
  }
  if (shape.seconds > MP3_MAX_SECONDS) {
    const [value, limit] = [shape.seconds, MP3_MAX_SECONDS].map(seconds => `${Math.ceil(seconds / 60)} minutes`)
    throw new Refused(refuse('limit_reached', { name: 'the MP3 of a recording', value, limit }))
  }
  const { etag, modified_at } = validators(row, file.bytes)
  // HEAD encodes nothing, so it needs no place.
  const place = asked.method === 'HEAD' ? null : services.mp3.begin(row.project_id)
  if (!place && asked.method !== 'HEAD')
    throw new Refused(refuse('rate_limited', { value: 'other MP3 downloads still run' }))
  const mp3 = mp3File(shape, place, () => openRecording(services, row.file, row.machine_id))
  return fileAnswer(mp3, { type: 'audio/mpeg', etag: `${etag.slice(0, -1)}-${MP3_VERSION}"`, modified_at }, asked)
}

const MP3_MAX_SECONDS = 4 * 3600
/** Part of the tag. It changes with whatever changes the bytes: the encoder, and the bit rates of mp3/shape.ts. */
const MP3_VERSION = 'mp3.1'

/** The tag is of the content, not of the file, so that encryption does not change it. */
const validators = ({ sid, sha256, updated_at }: RecordingRow, bytes: number) => ({
  etag: `"${sha256 ?? `${sid}-${bytes}`}"`,
  modified_at: updated_at,
})

type Opened = Awaited<ReturnType<typeof openRecording>>

/** Reads the head of the WAV file, and closes it. */
async function headOf(file: Opened): Promise<Buffer> {
  if (file.bytes < WAV_HEAD_BYTES) {
    await file.close()
    return Buffer.alloc(0)
  }
  return buffer(file.stream(0, WAV_HEAD_BYTES - 1))
}

/** Opens the file of a recording; null when it is missing. @throws Refused as `recordingAudio` */
async function opened(services: Services, row: RecordingRow): Promise<Opened | null> {
  const file = await openRecording(services, row.file, row.machine_id).catch((err: unknown) => {
    services.log.warn({ err, recording: row.sid }, 'the file of a recording cannot be read')
    if (err instanceof StoreError && err.status !== 404)
      throw new Refused(refuse('recording_unavailable', { value: row.sid }))
    if (err instanceof MachineFileError)
      throw new Refused(refuse('recording_unavailable', { value: `${row.sid}; ${err.message}` }))
    return null
  })
  if (!file) {
    // Without an object store, the file of a call on another machine can be had only there.
    if (row.machine_id !== '' && row.machine_id !== machineOf(services.settings.data_dir).machine_id)
      throw new Refused(refuse('recording_unavailable', { value: row.sid }))
    return null
  }
  return file
}
