import { useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask, readBytes } from '../lib/api.ts'
import type { CallExport } from '../lib/api-types.ts'
import { useAction, useData } from '../lib/data.ts'
import { bytes } from '../lib/format.ts'
import { saveAs } from '../lib/save-as.ts'
import { Button, Loaded, Meter, Notice, ProblemBox } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'

const POLL_MS = 1000

/** Writes all ended calls of a filter into a file: a job of the platform, whose progress is shown. */
export function ExportCalls({ filter }: { filter: Readonly<Record<string, string>> }) {
  const [job, setJob] = useState<string | null>(null)
  const action = useAction()
  const begin = () =>
    action.run(async () => {
      const { id } = await ask<CallExport>('POST', '/v1/exports', { body: { format: 'csv', filter } })
      setJob(id)
    })
  return (
    <>
      <Button icon="download" disabled={action.busy} onClick={() => void begin()}>
        Export as CSV
      </Button>
      {action.problem && (
        <Dialog title="Export" onClose={action.clear}>
          <ProblemBox problem={action.problem} />
        </Dialog>
      )}
      {job !== null && <Progress id={job} onClose={() => setJob(null)} />}
    </>
  )
}

function Progress({ id, onClose }: { id: string; onClose: () => void }) {
  const of = useData<CallExport>(`/v1/exports/${id}`, { poll_ms: POLL_MS })
  const action = useAction()
  const download = () =>
    action.run(async () =>
      saveAs(new Blob([await readBytes(`/v1/exports/${id}/file`)], { type: 'text/csv' }), 'calls.csv'),
    )
  return (
    <Dialog title="Export of ended calls" onClose={onClose}>
      <Loaded of={of}>
        {job => (
          <>
            <Meter name="Written" used={job.progress_percent} limit={100} show={value => `${value} %`} />
            <p>
              {counted(job.rows, 'call')}, {bytes(job.bytes)}
            </p>
            {job.state === 'failed' && <Notice tone="bad">{job.error ?? 'The export failed.'}</Notice>}
            <ProblemBox problem={action.problem} />
            <div class="actions">
              <Button
                kind="main-one"
                icon="download"
                disabled={job.state !== 'completed' || action.busy}
                onClick={() => void download()}
              >
                Download
              </Button>
              <Button onClick={onClose}>Close</Button>
            </div>
            <p class="muted small">It goes on when this is closed. The file is kept for seven days.</p>
          </>
        )}
      </Loaded>
    </Dialog>
  )
}
