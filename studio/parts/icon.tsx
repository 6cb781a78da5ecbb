const PATHS = {
  threads: 'M4 6h16M4 12h16M4 18h10',
  inbox: 'M4 13l2.5-8h11L20 13v6H4v-6zm0 0h5l1 3h4l1-3h5',
  effects: 'M12 3l9.5 17h-19L12 3zm0 7v4m0 3v.01',
  workers: 'M5 4h14v6H5V4zm0 10h14v6H5v-6zM8 7h.01M8 17h.01',
  store: 'M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0V6zm0 0c0 4 16 4 16 0M4 12c0 4 16 4 16 0',
  retention: 'M12 7v5l3 2M12 3a9 9 0 1 0 9 9',
  fork: 'M7 4v10m0 0a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM17 4a3 3 0 1 1 0 6 3 3 0 0 1 0-6zm0 6c0 4-4 4-10 5',
  play: 'M7 5l11 7-11 7V5z',
  stop: 'M7 7h10v10H7z',
  close: 'M6 6l12 12M18 6L6 18',
  back: 'M14 6l-6 6 6 6',
  tool: 'M14 6a4 4 0 0 1 5-2l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5L8 20l-4-4 8-8z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0-5v2m0 14v2M3 12h2m14 0h2M5.6 5.6L7 7m10 10l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4',
  moon: 'M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z',
  auto: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  help: 'M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4m0 3v.01',
  leave: 'M10 4H5v16h5m4-4l4-4-4-4m4 4H9',
  check: 'M5 13l4 4L19 7',
  chevron: 'M9 6l6 6-6 6',
  download: 'M12 4v11m-5-4l5 5 5-5M5 20h14',
} as const

export type IconName = keyof typeof PATHS

/** A sign beside a word; it says nothing by itself. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  )
}
