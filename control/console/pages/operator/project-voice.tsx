import { ask } from '../../lib/api.ts'
import type { OperatorVoiceAccount } from '../../lib/api-types.ts'
import { useAction, useData } from '../../lib/data.ts'
import { Button, Card, Facts, Id, Loaded, ProblemBox, Status } from '../../ui/basics.tsx'

/** The voice account of a project, and whether the wider voice-calls API is served to it. */
export function ProjectVoice({ path }: { readonly path: string }) {
  const account = useData<OperatorVoiceAccount>(`${path}/voice-account`)
  const action = useAction()
  const serve = (of: OperatorVoiceAccount) =>
    void action.run(async () => {
      const voice_api = of.voice_api === 'extended' ? 'spec' : 'extended'
      const saved = { body: { voice_api }, on: { id: of.account_sid, revision: of.revision } }
      account.set(await ask<OperatorVoiceAccount>('PATCH', `${path}/voice-account`, saved))
    })
  return (
    <Loaded of={account}>
      {of => (
        <Card
          title="Voice account"
          hint="The wider API has conferences, queues, streams and more. Without it those paths are 404."
          actions={
            <Button small disabled={action.busy} onClick={() => serve(of)}>
              {of.voice_api === 'extended' ? 'Serve the specification alone' : 'Serve the wider API'}
            </Button>
          }
        >
          <Facts
            rows={[
              ['Account', <Id key="a" value={of.account_sid} what="the account's id" />],
              ['Status', <Status key="s" of={of.status} />],
              ['Paths', of.voice_api === 'extended' ? 'The wider API' : 'Those of the specification'],
            ]}
          />
          <ProblemBox problem={action.problem} />
        </Card>
      )}
    </Loaded>
  )
}
