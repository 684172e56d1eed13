import {
  type CarrierStep,
  type CarrierWish,
  describePlan,
  planCarriers,
  planChange,
} from '../../core/domain/carriers/plan.ts'
import { seal } from '../../core/runtime/secrets.ts'
import {
  type Carrier,
  type CarrierParts,
  changeCarrier,
  deleteCarrier,
  findCarrier,
  insertCarrier,
  listCarriers,
  putCarrierPart,
} from '../../core/state/configuration/carriers.ts'
import type { Trx } from '../../core/state/index.ts'
import { type Change, invalidFields, refuse } from '../http/reply.ts'
import {
  DigestPassword,
  DigestUsername,
  Flag,
  input,
  list,
  listOf,
  optional,
  resource,
  type Static,
  type TObject,
  Transport,
  Type,
  userName,
} from '../http/schema.ts'
import type { FieldError } from '../http/validate.ts'
import {
  asWish,
  CarrierAnswer,
  CarrierRequest,
  CarrierUpdate,
  carrierFaults,
  presentCarrier,
  TLS_FIELDS,
  tlsFaults,
  tlsOf,
  uriFaults,
  wishOf,
} from './carrier-fields.ts'
import { route } from './route.ts'

const MAX_CARRIERS = 1000

const RegistrationUser = userName('@:;<>"')
const RegistrationRequest = input('CarrierRegistrationRequest', {
  registrar: Type.String({ maxLength: 255, pattern: '^[sS][iI][pP]:[^@\\s;?<>"]+$' }),
  username: RegistrationUser,
  password: Type.String({ minLength: 1, maxLength: 256 }),
  contact_user: optional(RegistrationUser),
  expires_seconds: optional(Type.Integer({ minimum: 60, maximum: 86_400 })),
  transport: optional(Transport),
  ...TLS_FIELDS,
})

/** What an operator decided about a carrier, without its calls of the moment. */
function auditedCarrier(carrier: Carrier) {
  const { live_calls: _, state: __, ...decided } = presentCarrier(carrier)
  return decided
}

export function carrierChange(summary: string, before: Carrier | null, after: Carrier | null): Change {
  const { id, name } = after ?? before ?? { id: '', name: '' }
  return {
    resource: { type: 'carrier', id, name, href: after ? `/operator/v1/carriers/${id}` : null },
    summary,
    before: before && auditedCarrier(before),
    after: after && auditedCarrier(after),
    from_revision: before?.revision ?? null,
    to_revision: after?.revision ?? null,
  }
}

/** The platform makes the sandbox carrier at its start; an operator's change would not last. */
export const isSandbox = ({ sandbox, name }: Carrier) =>
  sandbox === 1 ? refuse('state_conflict', { name, value: 'the sandbox carrier' }) : null

export async function known(trx: Trx, id: string): Promise<Carrier> {
  const carrier = await findCarrier(trx, id)
  if (!carrier) throw new Error(`the carrier ${id} is gone within its own transaction`)
  return carrier
}

const isTaken = async (trx: Trx, name: string, own: string | null): Promise<boolean> =>
  (await listCarriers(trx)).some(carrier => carrier.name === name && carrier.id !== own)

/** Applies one step of a plan. Returns the change for the audit trail. */
async function applied(trx: Trx, step: CarrierStep, current: readonly Carrier[], now: string): Promise<Change> {
  if (step.do === 'add') {
    const after = await known(trx, await insertCarrier(trx, step.wish, now))
    return { ...carrierChange(`Added the carrier ${after.name}`, null, after), action: 'carrier.created' }
  }
  const before = current.find(({ id }) => id === step.id) ?? null
  if (step.do === 'remove') {
    await deleteCarrier(trx, step.id)
    return { ...carrierChange(`Removed the carrier ${step.name}`, before, null), action: 'carrier.removed' }
  }
  await changeCarrier(trx, step)
  const after = await known(trx, step.id)
  return { ...carrierChange(`Changed the carrier ${after.name}`, before, after), action: 'carrier.updated' }
}

const twice = (wished: readonly CarrierWish[]) =>
  wished.flatMap(({ name }, at) =>
    wished.findIndex(other => other.name === name) < at
      ? [{ pointer: `/carriers/${at}/name`, message: 'repeats the name of an earlier carrier' }]
      : [],
  )

/** The two routes of what a carrier has at most one of: PUT sets it, DELETE removes it. */
function partOf<Part extends keyof CarrierParts, Body extends TObject>(of: {
  readonly path: 'credentials' | 'registration'
  readonly part: Part
  readonly put: string
  readonly remove: string
  /** What the audit trail calls both, and how its sentences about them begin. */
  readonly actions: { readonly put: string; readonly remove: string }
  readonly done: { readonly put: string; readonly remove: string }
  readonly body: Body
  readonly faults?: (body: Static<Body>) => FieldError[]
  readonly rowOf: (body: Static<Body>, master_key: Buffer) => CarrierParts[Part]
}) {
  const path = `/carriers/{carrier_id}/${of.path}` as const
  const written = async (db: Trx, carrier: Carrier, row: CarrierParts[Part] | null) => {
    await putCarrierPart(db, carrier.id, of.part, row)
    const saved = await known(db, carrier.id)
    const change = carrierChange(`${row ? of.done.put : of.done.remove} ${saved.name}`, carrier, saved)
    return { status: 200 as const, revision: saved.revision, body: presentCarrier(saved), change }
  }
  const common = {
    path,
    scope: 'operator:network',
    context: 'organization',
    if_match: 'carrier',
    applies: true,
    replies: { 200: CarrierAnswer },
  } as const
  return [
    route({
      ...common,
      method: 'put',
      summary: of.put,
      audit: { kind: 'trunks', action: of.actions.put },
      body: of.body,
      refusals: ['state_conflict'],
      async run({ db, carrier, body, services }) {
        const given = body as Static<Body>
        const faults = of.faults?.(given) ?? []
        if (faults.length > 0) return invalidFields(faults)
        return isSandbox(carrier) ?? written(db, carrier, of.rowOf(given, services.settings.master_key))
      },
    }),
    route({
      ...common,
      method: 'delete',
      summary: of.remove,
      audit: { kind: 'trunks', action: of.actions.remove },
      async run({ db, carrier }) {
        return written(db, carrier, null)
      },
    }),
  ]
}

export const carriers = [
  route({
    method: 'get',
    path: '/carriers',
    summary: 'List all carriers with their sources, targets, routes and registrations, by name',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: listOf(CarrierAnswer) },
    async run({ db }) {
      return { status: 200, body: { data: (await listCarriers(db)).map(presentCarrier) } }
    },
  }),

  route({
    method: 'post',
    path: '/carriers',
    summary: 'Add a carrier',
    description: 'Signaling nodes use it from their next call on. Its sources win over sources of trunks.',
    scope: 'operator:network',
    context: 'organization',
    idempotent: true,
    applies: true,
    audit: { kind: 'trunks', action: 'carrier.created' },
    body: CarrierRequest,
    replies: { 201: CarrierAnswer },
    refusals: ['resource_exists'],
    async run({ db, body, now }) {
      const faults = carrierFaults(body)
      if (faults.length > 0) return invalidFields(faults)
      if (await isTaken(db, body.name, null)) return refuse('resource_exists', { value: `the carrier ${body.name}` })
      const carrier = await known(db, await insertCarrier(db, wishOf(body), now))
      const change = carrierChange(`Added the carrier ${carrier.name}`, null, carrier)
      return { status: 201, revision: carrier.revision, body: presentCarrier(carrier), change }
    },
  }),

  route({
    method: 'post',
    path: '/carriers/apply',
    summary: 'Apply a list to the carriers, all or nothing; a dry run changes nothing',
    description:
      'Carriers are matched by name. A carrier that the list does not name stays, unless `prune` is true. The sandbox carrier is left alone.',
    scope: 'operator:network',
    context: 'organization',
    applies: true,
    audit: { kind: 'trunks', action: 'carrier.updated' },
    body: input('ApplyCarriersRequest', {
      carriers: list(CarrierRequest, { maxItems: MAX_CARRIERS }),
      prune: optional(Flag),
      confirm_wide_sources: optional(Flag),
      dry_run: optional(Flag),
    }),
    replies: {
      200: resource('AppliedCarriers', {
        applied: Flag,
        steps: list(Type.String({ description: 'An addition (+), a removal (-) or a change (~).' })),
      }),
    },
    async run({ db, body, now }) {
      const { prune = false, dry_run = false } = body
      const { confirm_wide_sources = false } = body
      const confirmed = { confirm_wide_sources }
      const wished = body.carriers.map(carrier => wishOf(carrier))
      const faults = [
        ...twice(wished),
        ...body.carriers.flatMap((carrier, at) => carrierFaults({ ...confirmed, ...carrier }, `/carriers/${at}`)),
      ]
      if (faults.length > 0) return invalidFields(faults)
      const current = (await listCarriers(db)).filter(({ sandbox }) => sandbox === 0)
      const steps = planCarriers(current.map(asWish), wished, { prune })
      const change: Change[] = []
      if (!dry_run) for (const step of steps) change.push(await applied(db, step, current, now))
      return { status: 200, body: { applied: change.length > 0, steps: [...describePlan(steps)] }, change }
    },
  }),

  route({
    method: 'get',
    path: '/carriers/{carrier_id}',
    summary: 'Read a carrier',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: CarrierAnswer },
    async run({ carrier }) {
      return { status: 200, revision: carrier.revision, body: presentCarrier(carrier) }
    },
  }),

  route({
    method: 'patch',
    path: '/carriers/{carrier_id}',
    summary: 'Change a carrier; disabling it drains it',
    scope: 'operator:network',
    context: 'organization',
    if_match: 'carrier',
    applies: true,
    audit: { kind: 'trunks', action: 'carrier.updated' },
    body: CarrierUpdate,
    replies: { 200: CarrierAnswer },
    refusals: ['resource_exists', 'state_conflict'],
    async run({ db, carrier, body }) {
      const faults = carrierFaults(body)
      if (faults.length > 0) return invalidFields(faults)
      const refused = isSandbox(carrier)
      if (refused) return refused
      if (body.name !== undefined && (await isTaken(db, body.name, carrier.id)))
        return refuse('resource_exists', { value: `the carrier ${body.name}` })
      const current = asWish(carrier)
      const step = planChange(current, wishOf(body, current))
      if (!step) return { status: 200, revision: carrier.revision, body: presentCarrier(carrier), change: null }
      await changeCarrier(db, step)
      const saved = await known(db, carrier.id)
      const change = carrierChange(`Changed the carrier ${saved.name}`, carrier, saved)
      return { status: 200, revision: saved.revision, body: presentCarrier(saved), change }
    },
  }),

  route({
    method: 'delete',
    path: '/carriers/{carrier_id}',
    summary: 'Remove a carrier; its running calls continue',
    scope: 'operator:network',
    context: 'organization',
    if_match: 'carrier',
    applies: true,
    audit: { kind: 'trunks', action: 'carrier.removed' },
    replies: { 204: null },
    refusals: ['state_conflict'],
    async run({ db, carrier }) {
      const refused = isSandbox(carrier)
      if (refused) return refused
      await deleteCarrier(db, carrier.id)
      return { status: 204, change: carrierChange(`Removed the carrier ${carrier.name}`, carrier, null) }
    },
  }),

  ...partOf({
    path: 'credentials',
    part: 'carrier_credential',
    put: "Set what answers the carrier's challenges to our calls; the password is never shown",
    remove: 'Remove the credentials for a carrier; those of a registration remain',
    actions: { put: 'carrier.credentials_changed', remove: 'carrier.credentials_removed' },
    done: { put: 'Set the credentials for', remove: 'Removed the credentials for' },
    body: input('CarrierCredentialsRequest', { username: DigestUsername, password: DigestPassword }),
    rowOf: ({ username, password }, master_key) => ({ username, password_sealed: seal(master_key, password) }),
  }),

  ...partOf({
    path: 'registration',
    part: 'carrier_registration',
    put: 'Register with a carrier, and keep the registration up',
    remove: 'End the registration with a carrier',
    actions: { put: 'carrier.registration_changed', remove: 'carrier.registration_ended' },
    done: { put: 'Set the registration with', remove: 'Ended the registration with' },
    body: RegistrationRequest,
    faults: body => [...uriFaults(body.registrar, body.transport, '/registrar'), ...tlsFaults(body)],
    rowOf: ({ registrar, username, password, ...body }, master_key) => ({
      registrar,
      username,
      password_sealed: seal(master_key, password),
      contact_user: body.contact_user ?? username,
      expires_seconds: body.expires_seconds ?? 3600,
      transport: body.transport ?? 'udp',
      ...tlsOf(body),
      enabled: 1,
    }),
  }),
]
