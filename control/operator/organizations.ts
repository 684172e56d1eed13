import {
  insertOrganization,
  insertProject,
  listOrganizations,
  type OrganizationRow,
  saveOrganization,
  suspendProjects,
} from '../../core/state/people/customers.ts'
import { pageAfter, pageQuery } from '../http/paging.ts'
import { type Change, invalid, refuse } from '../http/reply.ts'
import {
  Email,
  Instant,
  Int64,
  input,
  Name,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { AuditReason } from './audit-reason.ts'
import { InvitationCreation, invite } from './invitations.ts'
import { Project, presentProject, projectChange } from './projects.ts'
import { route } from './route.ts'

const MAX_PAGE = 200

const Organization = resource('OperatorOrganization', {
  id: Type.String(),
  name: Type.String(),
  time_zone: Type.String(),
  contact_email: nullable(Type.String()),
  status: oneOf('active', 'suspended'),
  revision: Int64,
  created_at: Instant,
})

const present = (row: OrganizationRow): Static<typeof Organization> => ({
  id: row.id,
  name: row.name,
  time_zone: row.time_zone,
  contact_email: row.contact_email,
  status: row.status,
  revision: row.revision,
  created_at: row.created_at,
})

const organizationChange = (
  summary: string,
  before: OrganizationRow | null,
  after: OrganizationRow,
  detail: string | null = null,
): Change => ({
  resource: {
    type: 'organization',
    id: after.id,
    name: after.name,
    href: `/operator/v1/organizations/${after.id}`,
  },
  summary,
  detail,
  before: before && present(before),
  after: present(after),
  from_revision: before?.revision ?? null,
  to_revision: after.revision,
  customer: { organization_id: after.id, project_id: null },
})

const TimeZone = Type.String({ minLength: 1, maxLength: 64 })

/** The time zones that this Node knows, which are those of the IANA database. */
function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

const notATimeZone = (name: string | undefined) =>
  name === undefined || isTimeZone(name)
    ? null
    : invalid('/time_zone', 'is not a time zone of the IANA database, such as Africa/Lagos')

/** Suspends or resumes an organization, and its projects with it. */
const standing = (action: 'suspend' | 'resume') =>
  route({
    method: 'post',
    path: `/organizations/{organization_id}/${action}`,
    summary:
      action === 'suspend'
        ? 'Suspend an organization: its projects take no new calls and no changes'
        : 'Resume a suspended organization and the projects that its suspension disabled',
    scope: 'operator:customers',
    context: 'organization',
    if_match: 'organization',
    applies: true,
    audit: { kind: 'seats', action: `organization.${action === 'suspend' ? 'suspended' : 'resumed'}` },
    body: input(action === 'suspend' ? 'SuspendOrganizationRequest' : 'ResumeOrganizationRequest', {
      reason: AuditReason,
    }),
    replies: { 200: Organization },
    refusals: ['state_conflict'],
    async run({ db, organization, body }) {
      const suspended = action === 'suspend'
      if ((organization.status === 'suspended') === suspended)
        return refuse('state_conflict', { name: organization.name, value: organization.status })
      const saved = await saveOrganization(db, organization, { status: suspended ? 'suspended' : 'active' })
      const projects = await suspendProjects(db, organization.id, suspended)
      const verb = suspended ? 'Suspended' : 'Resumed'
      return {
        status: 200,
        revision: saved.revision,
        body: present(saved),
        change: [
          organizationChange(`${verb} ${saved.name}`, organization, saved, body.reason),
          ...projects.map(project => ({
            ...projectChange(
              `${suspended ? 'Disabled' : 'Enabled'} ${project.name} with its organization`,
              null,
              project,
            ),
            action: suspended ? 'project.disabled' : 'project.enabled',
          })),
        ],
      }
    },
  })

const CreatedOrganization = resource('CreatedOrganization', {
  organization: Organization,
  project: Project,
  invitation: InvitationCreation,
})

export const organizations = [
  route({
    method: 'get',
    path: '/organizations',
    summary: 'List the organizations',
    scope: 'operator:read',
    context: 'organization',
    query: Type.Object(pageQuery(MAX_PAGE), { additionalProperties: false }),
    replies: { 200: pageSchema(Organization) },
    run: ({ db, query }) =>
      pageAfter(query, { read: window => listOrganizations(db, window), key: row => row.id, present }),
  }),

  route({
    method: 'post',
    path: '/organizations',
    summary: 'Create an organization with its first project, in the sandbox, and invite its first admin',
    scope: 'operator:customers',
    context: 'organization',
    idempotent: true,
    applies: true,
    audit: { kind: 'seats', action: 'organization.created' },
    body: input('CreateOrganizationRequest', {
      name: Name,
      time_zone: TimeZone,
      contact_email: Email,
      admin_email: optional(Email),
      project_name: optional(Name),
    }),
    replies: { 201: CreatedOrganization },
    refusals: ['resource_exists'],
    for_replay: (body: Static<typeof CreatedOrganization>) => ({
      ...body,
      invitation: { ...body.invitation, url: null },
    }),
    async run({ db, body, now, services }) {
      const wrong = notATimeZone(body.time_zone)
      if (wrong) return wrong
      const { name, time_zone, contact_email } = body
      const organization = await insertOrganization(db, { name, time_zone, contact_email }, now)
      const terms = { name: body.project_name ?? name, sandbox: true, prepaid: true, credit_minor: 0 }
      const { master_key } = services.settings
      const project = await insertProject(db, { organization_id: organization.id, ...terms }, { master_key, now })
      const admin = { email: body.admin_email ?? contact_email, role: 'org:admin' } as const
      const invited = await invite(db, organization, admin, { now, services })
      if ('refused' in invited) return invited
      return {
        status: 201,
        revision: organization.revision,
        body: {
          organization: present(organization),
          project: await presentProject(db, project),
          invitation: invited.shown,
        },
        change: [
          organizationChange(`Created ${name}`, null, organization),
          { ...projectChange(`Created ${project.name}`, null, project), action: 'project.created' },
          invited.change,
        ],
      }
    },
  }),

  route({
    method: 'get',
    path: '/organizations/{organization_id}',
    summary: 'Read an organization',
    scope: 'operator:read',
    context: 'organization',
    replies: { 200: Organization },
    async run({ organization }) {
      return { status: 200, revision: organization.revision, body: present(organization) }
    },
  }),

  route({
    method: 'patch',
    path: '/organizations/{organization_id}',
    summary: 'Change the name, the time zone or the contact of an organization',
    scope: 'operator:customers',
    context: 'organization',
    if_match: 'organization',
    applies: true,
    audit: { kind: 'seats', action: 'organization.updated' },
    body: input('UpdateOrganizationRequest', {
      name: optional(Name),
      time_zone: optional(TimeZone),
      contact_email: optional(Email),
    }),
    replies: { 200: Organization },
    async run({ db, organization, body }) {
      const wrong = notATimeZone(body.time_zone)
      if (wrong) return wrong
      const saved = await saveOrganization(db, organization, body)
      const change = organizationChange(`Changed ${saved.name}`, organization, saved)
      return { status: 200, revision: saved.revision, body: present(saved), change }
    },
  }),

  standing('suspend'),
  standing('resume'),
]
