/** What the voice-calls API says of an account beside its calls, and of what runs on a call beside its document. */
const ALWAYS_NULL = 'Always null: there for programs that read the compatible form.'
const ALWAYS_FALSE = 'Always false: there for programs that read the compatible form.'
const ALWAYS = 'Always the same: there for programs that read the compatible form.'
const URLS = {
  voice_url: 'Where the document of a call is; null when no application answers.',
  voice_method: 'How it is requested.',
  voice_fallback_url: 'Where another document is when that one cannot be had or run; null: nowhere.',
  voice_fallback_method: 'How the other document is requested.',
  status_callback: 'The URL that receives the end of each call; null: none.',
  status_callback_method: 'How it is told.',
}
const of = (schema: string, properties: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(properties).map(([name, meaning]) => [`${schema}.${name}`, meaning]))

const ACCOUNT = 'The voice account (`AC…`).'
const ON_CALL = { account_sid: ACCOUNT, call_sid: 'The call (`CA…`).' }
const NUMBER = { account_sid: ACCOUNT, phone_number: 'The number, with the plus.', friendly_name: 'The number again.' }

export const VOICE_ACCOUNT: Readonly<Record<string, string>> = {
  AccountSid: ACCOUNT,
  activity: 'Id of what runs (`MZ…`, `SR…`, `GT…`), or its name.',
  subscription_sid: 'Id of the subscription (`ZY…`).',
  number_sid: 'Id of the number (`PN…`).',
  application_sid: 'Id of the voice application (`AP…`).',
  ...of('VoiceAccountResource', {
    owner_account_sid: 'The account again: it has no owner but itself.',
    friendly_name: 'The name of the project.',
    status: 'Always `active`: another account is 404.',
    type: '`Trial` in the sandbox, where nothing is billed.',
    subresource_uris: 'Paths of what belongs to it.',
  }),
  ...of('VoiceBalance', {
    account_sid: ACCOUNT,
    balance: 'What the account has, as decimal text; less than 0: what it owes.',
    currency: 'The currency (ISO 4217).',
  }),
  'VoiceIncomingPhoneNumberPage.incoming_phone_numbers': 'The numbers, in the order of their digits.',
  ...of('VoiceIncomingPhoneNumber', {
    ...NUMBER,
    ...URLS,
    api_version: 'Always `2010-04-01`.',
    capabilities: 'What it can be used for.',
    address_requirements: ALWAYS,
    address_sid: ALWAYS_NULL,
    beta: ALWAYS_FALSE,
    bundle_sid: ALWAYS_NULL,
    identity_sid: ALWAYS_NULL,
    emergency_status: ALWAYS,
    emergency_address_sid: ALWAYS_NULL,
    origin: ALWAYS,
    status: ALWAYS,
    trunk_sid: ALWAYS_NULL,
    voice_application_sid: 'The application that answers its calls; null: none, such as a trunk.',
    voice_caller_id_lookup: ALWAYS_FALSE,
    voice_receive_mode: ALWAYS,
  }),
  ...of('VoiceNumberCapabilities', { voice: 'Always true.', sms: ALWAYS_FALSE, mms: ALWAYS_FALSE, fax: ALWAYS_FALSE }),
  'VoiceOutgoingCallerIdPage.outgoing_caller_ids': 'The numbers, in the order of their digits.',
  ...of('VoiceOutgoingCallerId', NUMBER),
  'VoiceApplicationPage.applications': 'The applications, by name.',
  ...of('VoiceApplicationResource', {
    ...URLS,
    account_sid: ACCOUNT,
    api_version: 'Always `2010-04-01`.',
    friendly_name: 'Its name.',
    voice_caller_id_lookup: ALWAYS_FALSE,
    public_application_connect_enabled: ALWAYS_FALSE,
  }),
  usage_records: 'The sums, the latest first.',
  ...of('VoiceUsageRecord', {
    account_sid: ACCOUNT,
    api_version: 'Always `2010-04-01`.',
    as_of: 'When it was summed.',
    category: '`calls`, `calls-inbound` or `calls-outbound`.',
    description: 'The category, for people.',
    start_date: 'First day, in the time zone of the organization.',
    end_date: 'Last day.',
    count: 'Calls, as text.',
    count_unit: 'Always `calls`.',
    usage: 'Billed minutes, as decimal text.',
    usage_unit: 'Always `minutes`.',
    price: 'What they cost, as decimal text.',
    price_unit: 'The currency, in lower case.',
    subresource_uris: 'The same category in other periods.',
  }),
  ...of('VoiceCallActivity', {
    ...ON_CALL,
    name: 'Its name; null when it has none.',
    status: '`stopped` from the request to stop it, and with the end of the call.',
  }),
  ...of('VoiceMessageSubscription', ON_CALL),
  ...of('VoiceUserDefinedMessage', ON_CALL),
}
