/** Line icons on a grid of 24. */
const PATHS = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  calls: 'M5 4h4l2 5-2.5 1.5a11 11 0 0 0 5 5L15 13l5 2v4a2 2 0 0 1-2 2A16 16 0 0 1 3 6a2 2 0 0 1 2-2',
  alerts: 'M6 9a6 6 0 1 1 12 0c0 6 2.5 7 2.5 7h-17S6 15 6 9M10 20a2.2 2.2 0 0 0 4 0',
  trunks: 'M4 7h16M4 7l3-3M4 7l3 3M20 17H4M20 17l-3-3M20 17l-3 3',
  numbers: 'M5 9h14M5 15h14M10 4 8 20M16 4l-2 16',
  applications: 'm8 8-4 4 4 4M16 8l4 4-4 4M13.5 5l-3 14',
  policies: 'M12 3 5 6v5c0 5 3 8 7 10 4-2 7-5 7-10V6zM9 12l2 2 4-4',
  destinations: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
  subaccounts:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7M3 20a6 6 0 0 1 12 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5a6 6 0 0 1 3 5.5',
  billing: 'M4 6h16v12H4zM4 10h16M8 15h3',
  audit: 'M7 4h10v16H7zM10 8h4M10 12h4M10 16h2',
  keys: 'M14.5 9.5a4 4 0 1 1-2.5-2.5L20 3v4l-2 1v2h-2l-1.5 1.5',
  webhooks: 'M9 7a3 3 0 1 1 4.5 2.6L10 16M6 13a3 3 0 1 0 3 3h7M16 19a3 3 0 1 0-1-5.8L12 8',
  platform: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
  members: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4 21a8 8 0 0 1 16 0',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  debugger: 'M8 8a4 4 0 0 1 8 0v7a4 4 0 0 1-8 0zM8 11H3M21 11h-5M8 15l-4 3M20 18l-4-3M9 4 7.5 2M15 4l1.5-2',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'm5 12 5 5L19 7',
  cross: 'M6 6l12 12M18 6 6 18',
  menu: 'M4 6h16M4 12h16M4 18h16',
  plus: 'M12 5v14M5 12h14',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M19 5l-1.5 1.5M6.5 17.5 5 19',
  moon: 'M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  phone: 'M5 4h4l2 5-2.5 1.5a11 11 0 0 0 5 5L15 13l5 2v4a2 2 0 0 1-2 2A16 16 0 0 1 3 6a2 2 0 0 1 2-2',
  play: 'M7 4v16l13-8z',
  pause: 'M8 5v14M16 5v14',
  download: 'M12 4v11M8 11l4 4 4-4M5 20h14',
  back: 'M11 6l-6 6 6 6M5 12h14',
  alert: 'M12 4 2.5 20h19zM12 10v4M12 17h.01',
} as const

export type IconName = keyof typeof PATHS

export const Icon = ({ name }: { name: IconName }) => (
  <svg
    class="icon"
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="1.8"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d={PATHS[name]} />
  </svg>
)
