import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { findBillingAccount } from '../../core/state/money/rates.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { oneOf, resource, Type } from '../http/schema.ts'
import { forReason } from './errors.ts'
import { decimalOf } from './fields.ts'
import { accountPath, dateText } from './present.ts'
import { voiceRoute } from './route.ts'

/** The account itself, and the balance of the account that pays for it. */

const Text = Type.String()

const SUBRESOURCES = {
  applications: 'Applications',
  balance: 'Balance',
  calls: 'Calls',
  conferences: 'Conferences',
  incoming_phone_numbers: 'IncomingPhoneNumbers',
  outgoing_caller_ids: 'OutgoingCallerIds',
  queues: 'Queues',
  recordings: 'Recordings',
  usage: 'Usage/Records',
} as const

const Account = resource('VoiceAccountResource', {
  sid: Text,
  owner_account_sid: Text,
  friendly_name: Text,
  status: oneOf('active'),
  type: oneOf('Full', 'Trial'),
  auth_token: Type.Null({ description: 'Only a signed-in person sees the token, in the console.' }),
  date_created: Text,
  date_updated: Text,
  subresource_uris: Type.Record(Type.String(), Text),
  uri: Text,
})

const Balance = resource('VoiceBalance', { account_sid: Text, balance: Text, currency: Text })

export const account = [
  voiceRoute({
    method: 'GET',
    path: '',
    suffix: '.json',
    extended: true,
    summary: 'Fetch the account; a project in the sandbox is a trial account',
    library: 'api.v2010.accounts(client.accountSid).fetch()',
    replies: { 200: Account },
    async run({ account: { account_sid, project_id, project_name, created_at }, services }) {
      const project = await findAnyProject(services.state.db, project_id)
      const path = accountPath(account_sid)
      const uris = Object.entries(SUBRESOURCES).map(([name, below]) => [name, `${path}/${below}.json`] as const)
      return {
        status: 200,
        body: {
          sid: account_sid,
          owner_account_sid: account_sid,
          friendly_name: project_name,
          status: 'active' as const,
          type: project?.sandbox === 1 ? ('Trial' as const) : ('Full' as const),
          auth_token: null,
          date_created: dateText(created_at),
          date_updated: dateText(created_at),
          subresource_uris: Object.fromEntries(uris),
          uri: `${path}.json`,
        },
      }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: '/Balance',
    suffix: '.json',
    extended: true,
    summary: 'Fetch the balance of the account that pays for the project',
    library: 'balance.fetch()',
    replies: { 200: Balance },
    async run({ account: { account_sid, project_id }, services }) {
      const { db } = services.state
      const project = await findAnyProject(db, project_id)
      const payer = project && (await findBillingAccount(db, project.billing_account_id))
      if (!payer) return forReason('not_found', { value: 'The balance' })
      return { status: 200, body: { account_sid, balance: decimalOf(payer.balance_minor), currency: CURRENCY } }
    },
  }),
]
