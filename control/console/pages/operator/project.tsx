import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { GoLiveChecklist, OperatorProject } from '../../lib/api-types.ts'
import { type Data, useData } from '../../lib/data.ts'
import { count, money, words } from '../../lib/format.ts'
import { hrefOf, type PageProps } from '../../lib/router.ts'
import { Badge, Button, Card, Id, Loaded, Notice, PageHead, Status } from '../../ui/basics.tsx'
import { ConfirmWithReason } from '../../ui/dialog.tsx'
import { ProjectCeilings } from './project-ceilings.tsx'
import { ProjectMoney } from './project-money.tsx'
import { ProjectNumbers } from './project-numbers.tsx'
import { ProjectVoice } from './project-voice.tsx'

/** The checklist is read again this often: other pages of the menu close its points. */
const CHECKLIST_MS = 5000

export function OperatorProjectPage({ params }: PageProps) {
  const path = `/operator/v1/projects/${params['id']}`
  const of = useData<OperatorProject>(path)
  const checklist = useData<GoLiveChecklist>(`${path}/checklist`, { poll_ms: CHECKLIST_MS })
  return (
    <Loaded of={of} page={{ title: 'Project', back: { href: hrefOf('/operator/customers'), text: 'Customers' } }}>
      {project => (
        <>
          <Head project={project} path={path} set={of.set} />
          {project.sandbox && <Checklist project={project} path={path} set={of.set} of={checklist} />}
          <ProjectMoney project={project} path={path} set={of.set} onBooked={checklist.reload} />
          <ProjectNumbers project={project} onChanged={checklist.reload} />
          <ProjectVoice path={path} />
          <ProjectCeilings key={project.revision} project={project} path={path} set={of.set} />
        </>
      )}
    </Loaded>
  )
}

interface PartProps {
  readonly project: OperatorProject
  readonly path: string
  readonly set: (project: OperatorProject) => void
}

function Head({ project, path, set }: PartProps) {
  const [asking, setAsking] = useState(false)
  const verb = project.status === 'active' ? 'disable' : 'enable'
  return (
    <>
      <PageHead
        title={project.name}
        back={{ href: hrefOf(`/operator/customers/${project.organization_id}`), text: 'Customer' }}
        badges={
          <>
            <Badge tone={project.sandbox ? 'note' : 'good'}>{project.sandbox ? 'Sandbox' : 'Live'}</Badge>
            {project.status !== 'active' && <Status of={project.status} />}
          </>
        }
        sub={<Id value={project.id} />}
        actions={
          <Button kind={verb === 'disable' ? 'danger' : undefined} onClick={() => setAsking(true)}>
            {words(verb)}
          </Button>
        }
      />
      {asking && (
        <ConfirmWithReason
          title={`${words(verb)} ${project.name}`}
          verb={words(verb)}
          onClose={() => setAsking(false)}
          onConfirm={async reason =>
            set(await ask<OperatorProject>('POST', `${path}/${verb}`, { body: { reason }, on: project }))
          }
        >
          <Notice tone="warn">
            {verb === 'disable'
              ? 'The project takes no new calls and no changes. Calls that run go on.'
              : 'The project takes calls and changes again.'}
          </Notice>
        </ConfirmWithReason>
      )}
    </>
  )
}

type Point = GoLiveChecklist['open'][number]

const POINTS: readonly {
  readonly point: Point
  readonly text: string
  readonly found: (of: GoLiveChecklist) => string
  readonly href: string
  readonly link: string
}[] = [
  {
    point: 'carrier',
    text: 'An enabled carrier has a target and a route',
    found: of => count(of.carriers),
    href: hrefOf('/operator/carriers'),
    link: 'Carriers',
  },
  {
    point: 'price_book',
    text: 'A price book is in force',
    found: of => count(of.price_books),
    href: hrefOf('/operator/rates'),
    link: 'Price books',
  },
  {
    point: 'number',
    text: 'The project holds a number',
    found: of => count(of.numbers),
    href: '#project-numbers',
    link: 'Numbers',
  },
  {
    point: 'balance',
    text: 'Calls have money or credit to use',
    found: of => (of.available_minor === null ? 'pays later' : money(of.available_minor)),
    href: '#project-money',
    link: 'Money',
  },
]

function Checklist({ project, path, set, of }: PartProps & { of: Data<GoLiveChecklist> }) {
  const [asking, setAsking] = useState(false)
  const goLive = async (reason: string) =>
    set(await ask<OperatorProject>('POST', `${path}/go-live`, { body: { reason }, on: project }))
  const ready = of.data?.open.length === 0
  return (
    <Card
      title="Going live"
      hint="Requirements that a project must meet before its calls reach carriers and cost money."
      actions={
        <Button kind="main-one" disabled={!ready} onClick={() => setAsking(true)}>
          Go live
        </Button>
      }
    >
      <Loaded of={of}>
        {found => (
          <ul class="trace" data-checklist>
            {POINTS.map(({ point, text, found: figure, href, link }) => {
              const open = found.open.includes(point)
              return (
                <li key={point} class="prose" data-point={point} data-open={open}>
                  <span class={open ? 'no' : 'yes'}>{open ? '✗' : '✓'}</span>
                  <span>
                    {text} <span class="muted">({figure(found)})</span> {open && <a href={href}>{link}</a>}
                    <span class="hidden-visually">{open ? 'open' : 'done'}</span>
                  </span>
                </li>
              )
            })}
          </ul>
        )}
      </Loaded>
      {asking && (
        <ConfirmWithReason
          title={`Take ${project.name} out of the sandbox`}
          verb="Go live"
          onClose={() => setAsking(false)}
          onConfirm={goLive}
        >
          <Notice tone="warn">From now on its calls reach carriers and are billed. There is no way back.</Notice>
        </ConfirmWithReason>
      )}
    </Card>
  )
}
