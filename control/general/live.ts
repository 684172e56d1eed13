import type { CallRequest } from '../../core/domain/calls/request.ts'
import { newId } from '../../core/runtime/ids.ts'
import { type CallRow, findAccountCall } from '../../core/state/calls/calls.ts'
import { firstHeldNumber, listGeneralCalls } from '../../core/state/calls/simulated-calls.ts'
import { isVoiceRefusal } from '../voice/errors.ts'
import { place } from '../voice/place.ts'
import { spoken } from '../voice/spoken.ts'
import { type CallEnvironment, errorOfVoice, type GeneralCall } from './environment.ts'

/** Production: calls from the project's first number and speaks the message. A call's id is its CallSid as a UUID. */
export const live: CallEnvironment = {
  async create({ services, account, now_ms }, { to, message }) {
    const number = await firstHeldNumber(services.state.db, account.project_id)
    if (!number)
      return {
        error_status: 409,
        code: 'no_number',
        message: 'The project has no number that the call could come from.',
      }
    const id = newId.uuid()
    const request: CallRequest & { readonly api: 'general' } = {
      api: 'general',
      markup: spoken(message),
      timeout_seconds: 60,
    }
    const placing = { sid: sidOf(id), account, to, from: number.e164, number, request, now_ms }
    const row = await place(services.state.db, placing)
    if (isVoiceRefusal(row)) return errorOfVoice(row)
    services.bus.ring('commands')
    return present(row)
  },
  async find({ services, account }, id) {
    const row = await findAccountCall(services.state.db, account.account_sid, sidOf(id))
    return row ? present(row) : null
  },
  async list({ services, account }, page) {
    return (await listGeneralCalls(services.state.db, account.account_sid, page)).map(present)
  },
}

const present = (row: CallRow): GeneralCall => ({
  id: row.sid.replace(/^CA(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
  status: row.status,
  to: row.to_number,
  created_at: row.queued_at,
})

const sidOf = (id: string): string => `CA${id.replaceAll('-', '')}`
