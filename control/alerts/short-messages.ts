import { smsRoute } from '../../core/domain/alerts/index.ts'
import type { CallRequest } from '../../core/domain/calls/request.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import { newId } from '../../core/runtime/ids.ts'
import { firstHeldNumber } from '../../core/state/calls/simulated-calls.ts'
import { findVoiceAccount, findVoiceAccountBySid } from '../../core/state/people/voice-accounts.ts'
import type { Services } from '../http/services.ts'
import { isVoiceRefusal } from '../voice/errors.ts'
import { place } from '../voice/place.ts'
import { spoken } from '../voice/spoken.ts'
import type { MessageChannel } from './channels.ts'
import type { Channels } from './notifications.ts'

/** Returns the channel for short messages that STROWGER_SMS_URL selects; none when the signaling node sends them. */
export function shortMessages(services: Services, http: Pick<HttpClient, 'request'>): Channels {
  const { sms_url, sms_token } = services.settings
  const route = sms_url === null ? null : smsRoute(sms_url)
  if (route === null) return { sms: null }
  switch (route.via) {
    case 'http':
      return { sms: providerChannel(http, route.url, sms_token) }
    case 'voice':
      return { sms: voiceChannel(services) }
    case 'sip':
      return {}
  }
}

/** Sends short messages through a provider's HTTP endpoint: JSON {id, to, text}. Any 2xx means success. */
function providerChannel(http: Pick<HttpClient, 'request'>, url: string, token: string | null): MessageChannel {
  return {
    async send({ recipient, body, id }) {
      const outcome = await http.request({
        method: 'POST',
        url,
        headers: {
          'Content-Type': 'application/json',
          ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ id, to: recipient, text: body }),
      })
      if (!outcome.ok) throw new Error(`the SMS provider could not be reached: ${outcome.error}`)
      if (outcome.status < 200 || outcome.status > 299) throw new Error(`the SMS provider answered ${outcome.status}`)
    },
    close() {},
  }
}

const SPOKEN_TIMES = 2

/**
 * Speaks the message in a call from the project's first number. `send` succeeds when the call is queued. The call is in
 * the call history and costs as much as any other.
 */
const voiceChannel = ({ state, bus, clock }: Services): MessageChannel => ({
  async send({ project_id, recipient, body }) {
    const { account_sid = '' } = (await findVoiceAccount(state.db, project_id)) ?? {}
    const account = await findVoiceAccountBySid(state.db, account_sid)
    const number = await firstHeldNumber(state.db, project_id)
    if (!account || !number) throw new Error('the project has no number that the call could come from')
    const request: CallRequest = { markup: spoken(body, SPOKEN_TIMES), timeout_seconds: 60 }
    const sid = newId.call()
    const row = await place(state.db, {
      sid,
      account,
      to: recipient,
      from: number.e164,
      number,
      request,
      now_ms: clock.now(),
    })
    if (isVoiceRefusal(row))
      throw new Error(`the call was refused: ${row.kind === 'numbered' ? row.message : row.detail}`)
    bus.ring('commands')
  },
  close() {},
})
