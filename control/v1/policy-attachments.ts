import { type Service, type ServiceType, voiceService } from '../../core/domain/admission/index.ts'
import type { PolicyRow } from '../../core/state/configuration/policies.ts'
import {
  type AttachmentRow,
  type AttachmentTerms,
  attachPolicy,
  detachPolicy,
} from '../../core/state/configuration/policy-attachments.ts'
import { findSubtrunk, type SubtrunkRow, saveSubtrunk } from '../../core/state/configuration/subtrunks.ts'
import { findTrunk, type TrunkRow } from '../../core/state/configuration/trunks.ts'
import {
  findApplication,
  saveApplication,
  type VoiceApplicationRow,
} from '../../core/state/configuration/voice-applications.ts'
import type { Trx } from '../../core/state/index.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { findVoiceAccount, saveVoiceAccount, type VoiceAccountRow } from '../../core/state/people/voice-accounts.ts'
import type { Caller } from '../http/caller.ts'
import { type Change, invalid, isRefusal, type Refusal, refuse } from '../http/reply.ts'
import { input, line, nullable, optional, type Static, Type } from '../http/schema.ts'
import { route } from './route.ts'
import { policyToAttach } from './seen-policies.ts'
import { presentSubtrunk, SubtrunkDetail, subtrunkChange } from './subtrunk-present.ts'
import { TrunkDetail } from './trunk-schemas.ts'
import { releasing, writeTrunk } from './trunk-writes.ts'
import { accountChange, presentVoiceAccount, VoiceAccount } from './voice-account.ts'
import { applicationChange, presentApplication, VoiceApplication } from './voice-applications.ts'

/** Policies of services: which one a trunk, a subtrunk, a voice application or the project's automation has. */

const ServicePolicyRequest = input('ServicePolicyRequest', {
  policy_id: nullable(Type.String({ maxLength: 128 })),
  note: optional(nullable(line(500, 0))),
  outbound_enabled: optional(Type.Boolean()),
})

const DESCRIPTION =
  'With null the default policy of the project applies. `outbound_enabled` false refuses the outbound calls of the ' +
  'service. An omitted `note` or `outbound_enabled` keeps its value.'

/** A write of a service, which gets its next revision. `work` attaches or detaches its policy. */
interface Write {
  readonly summary: string
  readonly work: () => Promise<void>
}

/** Reads a request: the write that it asks for, or its refusal. */
async function wanted(
  db: Trx,
  caller: Caller,
  of: { readonly project_id: string; readonly service: Service; readonly name: string },
  { policy_id, ...terms }: Static<typeof ServicePolicyRequest>,
  now: string,
): Promise<Write | Refusal<'validation_failed'>> {
  const { service, name } = of
  if (policy_id === null) {
    const [odd] = Object.keys(terms)
    if (odd !== undefined) return invalid(`/${odd}`, 'belongs to an attached policy: policy_id is null')
    return { summary: `Detached the policy of ${name}`, work: async () => void (await detachPolicy(db, service)) }
  }
  const policy = await policyToAttach(db, caller, of.project_id, policy_id)
  if (!policy) return invalid('/policy_id', 'is not a live policy of the project')
  return {
    summary: `Attached policy ${policy.name} to ${name}`,
    work: () => attach(db, policy, service, now, terms),
  }
}

export const attach = async (trx: Trx, policy: PolicyRow, service: Service, now: string, terms: AttachmentTerms = {}) =>
  void (await attachPolicy(trx, policy, service, now, terms))

/** The reads that a write of a service needs, with the time of the request. */
interface Context {
  readonly db: Trx
  readonly project: ProjectRow
  readonly now: string
}

async function writeSubtrunk({ db, project, now }: Context, trunk: TrunkRow, row: SubtrunkRow, write: Write) {
  const now_ms = Date.parse(now)
  const before = await presentSubtrunk(db, project, trunk, row, now_ms)
  await write.work()
  const saved = await saveSubtrunk(db, row, {}, now)
  const after = await presentSubtrunk(db, project, trunk, saved, now_ms)
  return { revision: saved.revision, body: after, change: subtrunkChange(write.summary, saved, before, after) }
}

async function writeApplication({ db, now }: Context, row: VoiceApplicationRow, write: Write) {
  const before = await presentApplication(db, row, now)
  await write.work()
  const saved = await saveApplication(db, row, {}, now)
  const after = await presentApplication(db, saved, now)
  return { revision: saved.revision, body: after, change: applicationChange(write.summary, saved, before, after) }
}

async function writeAccount({ db, now }: Context, row: VoiceAccountRow, write: Write) {
  const before = await presentVoiceAccount(db, row, now)
  await write.work()
  const saved = await saveVoiceAccount(db, row, {})
  const after = await presentVoiceAccount(db, saved, now)
  return { revision: saved.revision, body: after, change: accountChange(write.summary, saved, before, after) }
}

/**
 * Writes the service with this id, by its type, without its policy. `detached` makes the write from the service's name.
 * Null when it is deleted.
 */
type WriteDetached = (
  context: Context,
  id: string,
  detached: (name: string) => Write,
) => Promise<{ readonly change: Change } | null>

const WRITE_DETACHED: Readonly<Record<ServiceType, WriteDetached>> = {
  async trunk({ db, project, now }, id, detached) {
    const trunk = await findTrunk(db, project.id, id)
    return trunk ? writeTrunk(db, trunk, now, detached(`trunk ${trunk.name}`)) : null
  },
  async subtrunk(context, id, detached) {
    const { db, project } = context
    const subtrunk = await findSubtrunk(db, project.id, id)
    const trunk = subtrunk && (await findTrunk(db, project.id, subtrunk.trunk_id))
    return subtrunk && trunk ? writeSubtrunk(context, trunk, subtrunk, detached(`subtrunk ${subtrunk.name}`)) : null
  },
  async voice_application(context, id, detached) {
    const application = await findApplication(context.db, context.project.id, id)
    return application
      ? writeApplication(context, application, detached(`voice application ${application.name}`))
      : null
  },
  async automation(context, _, detached) {
    const account = await findVoiceAccount(context.db, context.project.id)
    return account ? writeAccount(context, account, detached('automation')) : null
  },
}

/** Detaches a policy that is deleted. The service gets its next revision. Returns the change for the audit trail. */
export async function detachAttached(
  db: Trx,
  project: ProjectRow,
  { service_type: type, service_id: id }: AttachmentRow,
  policy: PolicyRow,
  now: string,
): Promise<readonly Change[]> {
  const detached = (name: string): Write => ({
    summary: `Detached policy ${policy.name} from ${name}`,
    work: async () => void (await detachPolicy(db, { type, id })),
  })
  const written = await WRITE_DETACHED[type]({ db, project, now }, id, detached)
  if (!written) await detached('a deleted service').work()
  return written ? [{ ...written.change, action: `${type}.policy_detached` }] : []
}

const WAKE = { wake: ['jobs'] as const }

export const policyAttachments = [
  route({
    method: 'put',
    path: '/trunks/{trunk_id}/outbound-policy',
    summary: 'Attach an outbound policy to a trunk in place of its own, or detach it with null',
    description: DESCRIPTION,
    scope: 'service_configuration:write',
    if_match: 'trunk',
    applies: true,
    audit: { kind: 'trunks', action: 'trunk.policy_changed' },
    body: ServicePolicyRequest,
    replies: { 200: TrunkDetail },
    refusals: ['trunk_releasing'],
    async run({ db, project, caller, trunk, body, now }) {
      const gone = releasing(trunk)
      if (gone) return gone
      const service = { type: 'trunk', id: trunk.id } as const
      const of = { project_id: project.id, service, name: `trunk ${trunk.name}` }
      const write = await wanted(db, caller, of, body, now)
      if (isRefusal(write)) return write
      const saved = await writeTrunk(db, trunk, now, write)
      const { detail, change } = saved
      return { status: 200, revision: saved.trunk.revision, body: detail, change, ...WAKE }
    },
  }),

  route({
    method: 'put',
    path: '/trunks/{trunk_id}/subtrunks/{subtrunk_id}/outbound-policy',
    summary: 'Attach an outbound policy to a subtrunk in addition to that of its trunk, or detach it with null',
    description: DESCRIPTION,
    scope: 'service_configuration:write',
    if_match: 'subtrunk',
    applies: true,
    audit: { kind: 'trunks', action: 'subtrunk.policy_changed' },
    body: ServicePolicyRequest,
    replies: { 200: SubtrunkDetail },
    refusals: ['state_conflict'],
    async run({ db, project, caller, trunk, subtrunk, body, now }) {
      if (subtrunk.status === 'releasing') return refuse('state_conflict', { name: subtrunk.name, value: 'releasing' })
      const service = { type: 'subtrunk', id: subtrunk.id } as const
      const of = { project_id: project.id, service, name: `subtrunk ${subtrunk.name}` }
      const write = await wanted(db, caller, of, body, now)
      if (isRefusal(write)) return write
      return { status: 200, ...(await writeSubtrunk({ db, project, now }, trunk, subtrunk, write)), ...WAKE }
    },
  }),

  route({
    method: 'put',
    path: '/voice/applications/{application_id}/outbound-policy',
    summary: 'Attach an outbound policy to a voice application in place of its own, or detach it with null',
    description: DESCRIPTION,
    scope: 'service_configuration:write',
    if_match: 'application',
    applies: true,
    audit: { kind: 'numbers', action: 'voice_application.policy_changed' },
    body: ServicePolicyRequest,
    replies: { 200: VoiceApplication },
    async run({ db, project, caller, application, body, now }) {
      const service = voiceService(project.id, application.id)
      const of = { project_id: project.id, service, name: `voice application ${application.name}` }
      const write = await wanted(db, caller, of, body, now)
      if (isRefusal(write)) return write
      return { status: 200, ...(await writeApplication({ db, project, now }, application, write)), ...WAKE }
    },
  }),

  route({
    method: 'put',
    path: '/voice-account/outbound-policy',
    summary: 'Attach an outbound policy to automation: the calls of the voice account without an application',
    description: DESCRIPTION,
    scope: 'service_configuration:write',
    loads: ['voice_account'],
    if_match: 'account',
    applies: true,
    audit: { kind: 'credentials', action: 'voice_account.policy_changed' },
    body: ServicePolicyRequest,
    replies: { 200: VoiceAccount },
    async run({ db, project, caller, account, body, now }) {
      const of = { project_id: project.id, service: voiceService(project.id, null), name: 'automation' }
      const write = await wanted(db, caller, of, body, now)
      if (isRefusal(write)) return write
      return { status: 200, ...(await writeAccount({ db, project, now }, account, write)), ...WAKE }
    },
  }),
]
