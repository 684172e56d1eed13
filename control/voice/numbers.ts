import { findNumber, findOwnedNumber, listHeldNumbers, type NumberRow } from '../../core/state/configuration/numbers.ts'
import { findApplication } from '../../core/state/configuration/voice-applications.ts'
import type { Db } from '../../core/state/index.ts'
import { nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { applicationUrls, urlsOf } from './applications.ts'
import { forReason, isVoiceRefusal, type VoiceRefusal } from './errors.ts'
import { plusKept, voicePageBy, voicePageSchema } from './listing.ts'
import { API_VERSION, accountPath, dateText } from './present.ts'
import { type VoiceContext, voiceRoute } from './route.ts'

/** The numbers of the project, to read: those that calls reach, and those that calls may show as their caller. */

const Text = Type.String()
const Flag = Type.Boolean()
const Nothing = Type.Null()

const IncomingPhoneNumber = resource('VoiceIncomingPhoneNumber', {
  sid: Text,
  account_sid: Text,
  api_version: Text,
  phone_number: Text,
  friendly_name: Text,
  capabilities: resource('VoiceNumberCapabilities', { voice: Flag, sms: Flag, mms: Flag, fax: Flag }),
  address_requirements: oneOf('none'),
  address_sid: Nothing,
  beta: Flag,
  bundle_sid: Nothing,
  identity_sid: Nothing,
  emergency_status: oneOf('Inactive'),
  emergency_address_sid: Nothing,
  origin: oneOf('hosted'),
  status: oneOf('in-use'),
  trunk_sid: Nothing,
  voice_application_sid: nullable(Text),
  voice_caller_id_lookup: Flag,
  voice_receive_mode: oneOf('voice'),
  ...applicationUrls,
  date_created: Text,
  date_updated: Text,
  uri: Text,
})

const OutgoingCallerId = resource('VoiceOutgoingCallerId', {
  sid: Text,
  account_sid: Text,
  friendly_name: Text,
  phone_number: Text,
  date_created: Text,
  date_updated: Text,
  uri: Text,
})

const common = (row: NumberRow, account_sid: string) => ({
  sid: row.id,
  account_sid,
  phone_number: row.e164,
  friendly_name: row.e164,
  date_created: dateText(row.created_at),
  date_updated: dateText(row.updated_at),
})

const NO_APPLICATION = {
  voice_url: null,
  voice_method: 'POST',
  voice_fallback_url: null,
  voice_fallback_method: 'POST',
  status_callback: null,
  status_callback_method: 'POST',
} as const

type Shown = Static<typeof IncomingPhoneNumber>

async function presentNumber(
  db: Db,
  row: NumberRow,
  { account_sid, project_id }: VoiceContext['account'],
): Promise<Shown> {
  const pointed = row.route_kind === 'voice_application' && row.route_id !== null ? row.route_id : null
  const application = pointed === null ? undefined : await findApplication(db, project_id, pointed)
  return {
    ...common(row, account_sid),
    api_version: API_VERSION,
    capabilities: { voice: true, sms: false, mms: false, fax: false },
    address_requirements: 'none',
    address_sid: null,
    beta: false,
    bundle_sid: null,
    identity_sid: null,
    emergency_status: 'Inactive',
    emergency_address_sid: null,
    origin: 'hosted',
    status: 'in-use',
    trunk_sid: null,
    voice_application_sid: application?.id ?? null,
    voice_caller_id_lookup: false,
    voice_receive_mode: 'voice',
    ...(application ? urlsOf(application) : NO_APPLICATION),
    uri: `${accountPath(account_sid)}${NUMBERS}/${row.id}.json`,
  }
}

const presentCallerId = (row: NumberRow, account_sid: string): Static<typeof OutgoingCallerId> => ({
  ...common(row, account_sid),
  uri: `${accountPath(account_sid)}${CALLER_IDS}/${row.id}.json`,
})

const NUMBERS = '/IncomingPhoneNumbers'
const CALLER_IDS = '/OutgoingCallerIds'
const FIELDS = {
  PhoneNumber: 'the digits that the number begins with',
  FriendlyName: 'exact: the number',
  'PageSize, Page': 'as in the list of calls',
}

const BY_DIGITS = {
  textOf: ({ e164 }: NumberRow) => e164.slice(1),
  read: (text: string) => (/^[0-9]{1,15}$/.test(text) ? `+${text}` : undefined),
}

/** Reads a page of the numbers that the project holds, in the order of their digits. */
const heldNumbers = ({ account, services, query, path }: VoiceContext) =>
  voicePageBy(BY_DIGITS, { query, path }, async (window, limit) => {
    const prefix = plusKept((query.get('PhoneNumber') ?? '').replace(/\*$/, ''))
    const name = query.get('FriendlyName')
    if (name) {
      const named = await findOwnedNumber(services.state.db, account.project_id, name)
      return named?.e164.includes(prefix) && 'offset' in window ? [named].slice(window.offset) : []
    }
    return listHeldNumbers(services.state.db, account.project_id, window, { limit, ...(prefix ? { prefix } : {}) })
  })

async function heldNumber({ account, services }: VoiceContext, sid: string): Promise<NumberRow | VoiceRefusal> {
  const row = await findNumber(services.state.db, account.project_id, sid)
  return row?.status === 'held' ? row : forReason('not_found', { value: `The number ${sid}` })
}

export const numbers = [
  voiceRoute({
    method: 'GET',
    path: NUMBERS,
    suffix: '.json',
    extended: true,
    summary: 'List the numbers of the project, with what answers their calls',
    fields: FIELDS,
    replies: { 200: voicePageSchema('VoiceIncomingPhoneNumberPage', 'incoming_phone_numbers', IncomingPhoneNumber) },
    async run(context) {
      const page = await heldNumbers(context)
      if (isVoiceRefusal(page)) return page
      const { account, services } = context
      const shown = page.rows.map(row => presentNumber(services.state.db, row, account))
      return { status: 200, body: { incoming_phone_numbers: await Promise.all(shown), ...page.about } }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: `${NUMBERS}/{number_sid}`,
    suffix: '.json',
    extended: true,
    summary: 'Fetch a number',
    replies: { 200: IncomingPhoneNumber },
    async run(context) {
      const row = await heldNumber(context, context.params.number_sid)
      if (isVoiceRefusal(row)) return row
      return { status: 200, body: await presentNumber(context.services.state.db, row, context.account) }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: CALLER_IDS,
    suffix: '.json',
    extended: true,
    summary: 'List the numbers that calls may present as their caller: those of the project',
    fields: FIELDS,
    replies: { 200: voicePageSchema('VoiceOutgoingCallerIdPage', 'outgoing_caller_ids', OutgoingCallerId) },
    async run(context) {
      const page = await heldNumbers(context)
      if (isVoiceRefusal(page)) return page
      const outgoing_caller_ids = page.rows.map(row => presentCallerId(row, context.account.account_sid))
      return { status: 200, body: { outgoing_caller_ids, ...page.about } }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: `${CALLER_IDS}/{number_sid}`,
    suffix: '.json',
    extended: true,
    summary: 'Fetch a number that calls may present as their caller',
    replies: { 200: OutgoingCallerId },
    async run(context) {
      const row = await heldNumber(context, context.params.number_sid)
      return isVoiceRefusal(row) ? row : { status: 200, body: presentCallerId(row, context.account.account_sid) }
    },
  }),
]
