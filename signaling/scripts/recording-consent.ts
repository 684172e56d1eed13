import { reasonSentence } from '../../core/domain/reasons/index.ts'
import { findRecordingConsent } from '../../core/state/calls/recording-consent.ts'
import { MediaRefusal } from '../b2bua/media.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { ScriptServices } from './services.ts'

/**
 * The one gate of whatever records a conversation: policies, `Record` of a create, Dial, conferences, Start Recording
 * and recording servers. The Record verb needs no consent: the caller leaves a message (design section 10).
 * @throws MediaRefusal while nobody has accepted the project's recording consent
 */
export async function requireConsent(
  { state }: Pick<ScriptServices, 'state'>,
  { project_id }: Pick<ScriptedCall, 'project_id'>,
): Promise<void> {
  if (await findRecordingConsent(state.db, project_id)) return
  const name = `project ${project_id}`
  throw new MediaRefusal('recording_consent_required', reasonSentence('recording_consent_required', { name }))
}
