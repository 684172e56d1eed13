import { readBytes } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import { saveAs } from '../lib/save-as.ts'
import { Button, ProblemBox } from '../ui/basics.tsx'

const FILES = [
  { text: 'Capture', path: 'pcap', type: 'application/x-pcapng', ending: '.pcapng' },
  { text: 'Evidence', path: 'evidence', type: 'application/json', ending: '-evidence.json' },
] as const

/** Files about a call for readers outside the platform: a capture of its SIP, and signed evidence. */
export function CallFiles({ call_id }: { call_id: string }) {
  const action = useAction()
  const save = ({ path, type, ending }: (typeof FILES)[number]) =>
    action.run(async () => {
      const bytes = await readBytes(`/v1/calls/${call_id}/${path}`)
      saveAs(new Blob([bytes], { type }), `${call_id}${ending}`)
    })
  return (
    <>
      {FILES.map(file => (
        <Button key={file.path} icon="download" disabled={action.busy} onClick={() => void save(file)}>
          {file.text}
        </Button>
      ))}
      <ProblemBox problem={action.problem} />
    </>
  )
}
