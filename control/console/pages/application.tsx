import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { NumberRouteSlice } from '../lib/api-types.ts'
import { useAction, useData } from '../lib/data.ts'
import { go, hrefOf, type PageProps } from '../lib/router.ts'
import { inSandbox, may } from '../lib/session.ts'
import type { Application, ListOf } from '../lib/types.ts'
import { RevisionBadge } from '../ui/apply.tsx'
import { Button, Card, Empty, Id, LinkButton, Loaded, Notice, PageHead, Time } from '../ui/basics.tsx'
import { ConfirmByName } from '../ui/dialog.tsx'
import { Form } from '../ui/form.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import { ApplicationFields, type ApplicationForm, bodyOf } from './applications.tsx'
import { Board } from './board.tsx'
import { PolicyChoice } from './policy-choice.tsx'

export function ApplicationPage({ params }: PageProps) {
  const path = `/v1/voice/applications/${params['id']}`
  const of = useData<Application>(path, { poll_ms: 5000 })
  const numbers = useData<ListOf<NumberRouteSlice>>(`${path}/numbers`)
  const [deleting, setDeleting] = useState(false)
  const write = may('service_configuration:write')
  const back = { href: hrefOf('/applications'), text: 'Voice applications' }
  return (
    <Loaded of={of} page={{ title: 'Voice application', back }}>
      {application => (
        <>
          <PageHead
            title={application.name}
            back={back}
            badges={<RevisionBadge desired={application.desired_revision} effective={application.effective_revision} />}
            sub={<Id value={application.id} />}
            actions={write && <Actions of={application} onDelete={() => setDeleting(true)} />}
          />
          <div class="columns">
            <Edit key={application.revision} application={application} path={path} onSaved={of.set} />
            <PolicyChoice<Application>
              path={path}
              of={application}
              on={application}
              hint="Rules the calls that this application makes. Without one of its own, the project's default does."
              onSaved={of.set}
            />
            <Card title="Numbers that ring it" flush>
              {(numbers.data?.data.length ?? 0) === 0 ? (
                <Empty title="No number rings it yet" action={<a href={hrefOf('/numbers')}>Route a number to it</a>} />
              ) : (
                <Table
                  label="Numbers that ring it"
                  rows={numbers.data?.data ?? []}
                  keyOf={row => row.number_id}
                  columns={[
                    { title: 'Number', cell: row => row.e164 },
                    { title: 'Since', cell: row => <Time at={row.routed_at} /> },
                  ]}
                />
              )}
            </Card>
          </div>
          {may('call_diagnostics:read') && <Board of={{ application_id: application.id }} />}
          {deleting && (
            <ConfirmByName
              title="Delete the application"
              name={application.name}
              verb="Delete"
              onClose={() => setDeleting(false)}
              onConfirm={async () => {
                await ask('DELETE', path, { on: application })
                go('/applications')
              }}
            >
              <Notice tone="bad">Numbers that ring it must be routed elsewhere first.</Notice>
            </ConfirmByName>
          )}
        </>
      )}
    </Loaded>
  )
}

const Actions = ({ of, onDelete }: { of: Application; onDelete: () => void }) => (
  <>
    <LinkButton href={hrefOf(`/editor?url=${encodeURIComponent(of.voice_url)}`)}>
      {inSandbox.value ? 'Run it against the sandbox' : 'Run it in a call'}
    </LinkButton>
    <Button kind="danger" onClick={onDelete}>
      Delete
    </Button>
  </>
)

function Edit({
  application,
  path,
  onSaved,
}: {
  application: Application
  path: string
  onSaved: (value: Application) => void
}) {
  const [form, setForm] = useState<ApplicationForm>({
    name: application.name,
    voice_url: application.voice_url,
    voice_method: application.voice_method,
    fallback_url: application.fallback_url ?? '',
    status_callback_url: application.status_callback_url ?? '',
  })
  const action = useAction()
  const save = () =>
    action.run(async () => {
      onSaved(await ask<Application>('PATCH', path, { body: bodyOf(form), on: application }))
      toast('Saved; applying')
    })
  return (
    <Card title="Addresses">
      <Form
        onSubmit={() => void save()}
        submit="Save and apply"
        busy={action.busy}
        problem={action.problem}
        fields={['/name', '/voice_url', '/voice_method', '/fallback_url', '/status_callback_url']}
        disabled={!may('service_configuration:write')}
      >
        <ApplicationFields form={form} set={changes => setForm({ ...form, ...changes })} action={action} />
      </Form>
    </Card>
  )
}
