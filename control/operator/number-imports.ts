import { AUDIENCES, readNumberList } from '../../core/domain/numbers/import.ts'
import { counted } from '../../core/domain/text/counted.ts'
import {
  confirmImport,
  draftImport,
  dropImport,
  firstLines,
  listImports,
  type NumberImportRow,
  showImport,
} from '../../core/state/configuration/number-imports.ts'
import type { Db, Trx } from '../../core/state/index.ts'
import { findAnyProject } from '../../core/state/people/customers.ts'
import { withoutScope } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { pageBefore, pageQuery } from '../http/paging.ts'
import { type Change, invalidFields, isRefusal, refuse } from '../http/reply.ts'
import {
  Count64,
  described,
  Instant,
  input,
  list,
  Money,
  Name,
  nullable,
  oneOf,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { MAX_RATE_LIST_BYTES } from './price-books.ts'
import { route } from './route.ts'

const MAX_PAGE = 200
/** The most lines that a preview shows. */
const SHOWN = 20

const NumberImport = resource('OperatorNumberImport', {
  id: Type.String(),
  name: Type.String(),
  state: described(
    oneOf('preview', 'running', 'completed'),
    '`preview`: nothing is in the inventory until it is confirmed, within 24 hours.',
  ),
  total: described(Count64, 'Numbers of the list.'),
  known: described(Count64, 'Of them, those that the platform had already; they stay as they are.'),
  done: described(Count64, 'Numbers that the job has taken so far.'),
  added: described(Count64, 'Of them, those that are new in the inventory.'),
  lines: described(
    list(
      resource('OperatorNumberLine', {
        e164: Type.String(),
        monthly_minor: Money,
        offered_to: oneOf(...AUDIENCES),
        offered_project_id: nullable(Type.String()),
      }),
    ),
    `The first ${SHOWN} numbers that have not been taken yet.`,
  ),
  begun_by: Type.String(),
  created_at: Instant,
  finished_at: nullable(Instant),
})

const present = async (db: Db | Trx, row: NumberImportRow): Promise<Static<typeof NumberImport>> => ({
  id: row.id,
  name: row.name,
  state: row.state === 'reading' ? 'preview' : row.state,
  total: row.total,
  known: row.known,
  done: row.done,
  added: row.added,
  lines: await firstLines(db, row.id, SHOWN),
  begun_by: row.begun_by,
  created_at: row.created_at,
  finished_at: row.finished_at,
})

const changeOf = (summary: string, row: NumberImportRow): Change => ({
  resource: { type: 'number_import', id: row.id, name: row.name, href: `/operator/v1/number-imports/${row.id}` },
  summary,
  detail: `${counted(row.total, 'number')}, ${row.known} of them known`,
  before: null,
  after: { total: row.total, known: row.known, priced: row.priced },
})

/** What numbers cost projects is money: more than the scope of the routes. */
const priceRefused = (caller: Caller, priced: number) => (priced === 0 ? null : withoutScope(caller, 'operator:money'))

export const numberImports = [
  route({
    method: 'get',
    path: '/number-imports',
    summary: 'List imports of numbers, newest first',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(NumberImport) },
    run: ({ db, query }) =>
      pageBefore(query, { read: window => listImports(db, window), present: row => present(db, row) }),
  }),

  route({
    method: 'post',
    path: '/number-imports',
    summary: 'Read a list of numbers as a preview; nothing is in the inventory until it is confirmed',
    description:
      'The list is CSV with the column `number`, and optionally `monthly` (minor units) and `offered_to` (`all`, ' +
      '`nobody` or the id of a project). At most 100,000 numbers. It is refused with all its faults. ' +
      'Prices need operator:money.',
    scope: 'operator:network',
    context: 'organization',
    idempotent: true,
    audit: { kind: 'numbers', action: 'number_import.previewed' },
    body: input('ImportNumbersRequest', {
      name: Name,
      csv: described(
        Type.String({ minLength: 1, maxLength: MAX_RATE_LIST_BYTES }),
        'Lines of number,monthly,offered_to.',
      ),
    }),
    replies: { 201: NumberImport },
    refusals: ['scope_required', 'role_forbidden', 'state_conflict'],
    example: { name: 'Lagos, November', csv: 'number,monthly,offered_to\n+2342010004001,50000,all\n' },
    async prepare({ body: { name, csv }, services: { state, clock }, caller, breathe }) {
      const { numbers, problems } = await readNumberList(csv, breathe)
      const faults = problems.map(({ line, message }) => ({ pointer: '/csv', message: `line ${line}: ${message}` }))
      if (faults.length > 0) return invalidFields(faults)
      const refusal = priceRefused(caller, numbers.filter(({ monthly_minor }) => monthly_minor > 0).length)
      if (refusal) return refusal
      for (const id of new Set(numbers.flatMap(line => line.offered_project_id ?? [])))
        if (!(await findAnyProject(state.db, id)))
          return invalidFields([{ pointer: '/csv', message: `offers numbers to ${id}, which is no project` }])
      return draftImport(state, { name, begun_by: caller.actor.name, now_ms: clock.now() }, numbers)
    },
    async run({ db, body: { name }, prepared, now }) {
      if (isRefusal(prepared)) return prepared
      const row = await showImport(db, prepared.id, prepared.known, now)
      if (!row) return refuse('state_conflict', { name: `the import ${name}`, value: 'gone' })
      const change = changeOf(`Previewed the numbers ${name}`, row)
      return { status: 201, body: await present(db, row), change }
    },
  }),

  route({
    method: 'get',
    path: '/number-imports/{import_id}',
    summary: 'Read an import of numbers and its progress',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: NumberImport },
    async run({ db, number_import }) {
      return { status: 200, body: await present(db, number_import) }
    },
  }),

  route({
    method: 'post',
    path: '/number-imports/{import_id}/confirm',
    summary: 'Take the numbers of a preview into the inventory; a job does it in the background',
    scope: 'operator:network',
    context: 'organization',
    audit: { kind: 'numbers', action: 'number_import.confirmed' },
    replies: { 200: NumberImport },
    refusals: ['scope_required', 'role_forbidden', 'state_conflict'],
    async run({ db, number_import: { id, name, state, priced }, caller, now }) {
      const refusal = priceRefused(caller, priced)
      if (refusal) return refusal
      const row = await confirmImport(db, id, now)
      if (!row) return refuse('state_conflict', { name: `the import ${name}`, value: state })
      const change = changeOf(`Imported the numbers ${name}`, row)
      return { status: 200, body: await present(db, row), change, wake: ['jobs'] as const }
    },
  }),

  route({
    method: 'delete',
    path: '/number-imports/{import_id}',
    summary: 'Drop a preview of numbers',
    scope: 'operator:network',
    context: 'organization',
    audit: { kind: 'numbers', action: 'number_import.dropped' },
    replies: { 204: null },
    refusals: ['state_conflict'],
    async run({ db, number_import: { id, name, state }, now }) {
      const row = await dropImport(db, id, now)
      if (!row) return refuse('state_conflict', { name: `the import ${name}`, value: state })
      return { status: 204, change: changeOf(`Dropped the numbers ${name}`, row), wake: ['jobs'] as const }
    },
  }),
]
