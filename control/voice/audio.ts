import type { IncomingMessage } from 'node:http'
import { machineOf } from '../../core/runtime/machine.ts'
import { StoreError } from '../../core/runtime/s3-requests.ts'
import type { RecordingRow } from '../../core/state/calls/calls.ts'
import { openRecording } from '../../core/state/calls/recording-file.ts'
import { type FileAnswer, fileAnswer } from '../http/file-answer.ts'
import { Refused, refuse } from '../http/reply.ts'
import type { Services } from '../http/services.ts'

/**
 * Returns the audio of a finished recording, whole or one range; null when its file is missing. HEAD gets only headers.
 * @throws Refused when the object store does not answer, or when another machine has the file
 */
export async function recordingAudio(
  services: Services,
  row: RecordingRow,
  request: Pick<IncomingMessage, 'headers' | 'method'>,
): Promise<FileAnswer | null> {
  const file = await openRecording(services, row.file).catch((err: unknown) => {
    services.log.warn({ err, recording: row.sid }, 'the file of a recording cannot be read')
    if (err instanceof StoreError && err.status !== 404)
      throw new Refused(refuse('recording_unavailable', { value: row.sid }))
    return null
  })
  if (!file) {
    // Without an object store, the file of a call on another machine can be had only there.
    if (row.machine_id !== '' && row.machine_id !== machineOf(services.settings.data_dir).machine_id)
      throw new Refused(refuse('recording_unavailable', { value: row.sid }))
    return null
  }
  // The tag is of the content, not of the file, so that encryption does not change it.
  const etag = `"${row.sha256 ?? `${row.sid}-${file.bytes}`}"`
  return fileAnswer(file, { type: 'audio/wav', etag, modified_at: row.updated_at }, request)
}
