import { join } from 'node:path'
import { systemClock } from '../core/runtime/clock.ts'
import { loadSettings, localUrl } from '../core/runtime/config.ts'
import { isOpenToOthers, keepCode, MEDIA_CODE } from '../core/runtime/doors.ts'
import { createHttpClient, warmUpHttp } from '../core/runtime/http/index.ts'
import { runProcess } from '../core/runtime/lifecycle.ts'
import { runProgramsBySupervisor } from '../core/runtime/program-runner.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { builtModule } from '../core/runtime/tree.ts'
import { createConnectWebSocket } from './forks/connect.ts'
import { loadWerift, weriftModule } from './webrtc/werift.ts'
import { createMediaWorker } from './worker.ts'

const EVERYWHERE = ['0.0.0.0/0', '::/0']

/** The media worker process: the native data plane and its Unix socket. */
void runProcess('media', loadSettings, async ({ config, log, metrics, user }) => {
  runProgramsBySupervisor()
  if (user !== null) {
    keepCode(join(config.run_dir, MEDIA_CODE), user)
    // Packages that load files on first use must load them now, because they cannot later.
    if (![weriftModule(), builtModule('media/process.js')].every(isOpenToOthers))
      await Promise.all([loadWerift(), warmUpHttp()])
  }
  for (const engine of [config.stt, config.tts])
    if (engine && 'api_key' in engine && engine.api_key === '')
      throw new StartRefused(`the speech engine ${engine.engine} needs its key: STROWGER_STT_KEY or STROWGER_TTS_KEY`)
  const http = createHttpClient({ allow_private: config.allow_private_webhooks, user_agent: 'Strowger-Media/1.0', log })
  // The operator chooses the engines, so they may be in a private network.
  const engineHttp = createHttpClient({ allow_private: EVERYWHERE, user_agent: 'Strowger-Media/1.0', log })
  const worker = await createMediaWorker({
    socket_path: join(config.run_dir, 'media.sock'),
    data_dir: config.data_dir,
    host: config.host,
    bind: config.bind,
    second: config.second,
    rtp_ports: config.rtp_ports,
    threads: config.media_threads,
    g729: config.g729,
    io_uring: config.io_uring,
    packet_ring: config.media_packet_ring,
    realtime: config.media_realtime,
    reserved_ports: [config.sip_port, config.sips_port, config.ws_port, config.http_port],
    http,
    base_url: config.base_url,
    connectWebSocket: createConnectWebSocket(config.allow_private_webhooks),
    listeners_url: localUrl(config).replace(/^http/, 'ws'),
    tts: config.tts,
    stt: config.stt,
    tts_choices: config.tts_choices,
    stt_choices: config.stt_choices,
    transcriber_url: config.transcriber_url,
    engineHttp,
    connectEngine: createConnectWebSocket(EVERYWHERE),
    log,
    clock: systemClock,
    metrics,
  })
  return {
    async stop() {
      await worker.stop()
      await Promise.all([http.close(), engineHttp.close()])
    },
  }
})
