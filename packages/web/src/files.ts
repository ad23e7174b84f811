// The files of the sandbox: browse, look at small texts, download, upload.
import type { Sandbox } from '@islet/sdk'
import { button, element } from './dom.ts'

type Entry = Awaited<ReturnType<Sandbox['files']['list']>>[number]

/** Larger files are only offered for download. */
const SHOWN_BYTES = 512 * 1024
const SHOWN_ENTRIES = 1000
/** The URL of a download is used at once. */
const DOWNLOAD_MS = 60_000

export function filesPanel(
  sandbox: Sandbox,
  { directory: start, onError }: { directory: string; onError: (error: unknown) => void },
): HTMLElement {
  const { files } = sandbox
  const crumbs = element('nav', { className: 'crumbs', ariaLabel: 'Directory' })
  const list = element('ul', { className: 'list' })
  const viewer = element('div', { className: 'viewer', hidden: true })
  const note = element('p', { className: 'note', role: 'status' })
  const chooser = element('input', { type: 'file', multiple: true, hidden: true })
  let directory = start
  const attempt = (work: () => Promise<void>) => () => work().catch(onError)

  async function show(path: string): Promise<void> {
    const entries = await files.list(path, { limit: SHOWN_ENTRIES })
    directory = path
    viewer.hidden = true
    list.hidden = false
    crumbs.replaceChildren(...crumbsOf(path))
    list.replaceChildren(...entries.sort(byKindAndName).map(row))
    if (entries.length === 0) note.textContent = 'This directory is empty.'
    else note.textContent = entries.length === SHOWN_ENTRIES ? `The first ${SHOWN_ENTRIES} entries.` : ''
  }

  function crumbsOf(path: string): HTMLElement[] {
    const parts = path.split('/').filter(Boolean)
    return ['/', ...parts].map((part, index) => {
      const target = `/${parts.slice(0, index).join('/')}`
      return button(
        part,
        attempt(() => show(target)),
      )
    })
  }

  function row(entry: Entry): HTMLElement {
    const isDirectory = entry.type === 'directory'
    const open = button(
      isDirectory ? `${entry.name}/` : entry.name,
      attempt(() => openEntry(entry)),
    )
    open.className = `name ${entry.type}`
    const size = element('span', {
      className: 'size',
      textContent: isDirectory ? '' : formatSize(entry.sizeBytes),
    })
    const get = button(
      '↓',
      attempt(() => download(entry.path)),
      `Download ${entry.name}`,
    )
    return element('li', {}, open, size, entry.type === 'file' ? get : element('span'))
  }

  async function openEntry(entry: Entry): Promise<void> {
    const { type, sizeBytes } = entry.type === 'symlink' ? await files.stat(entry.path) : entry
    if (type === 'directory') return show(entry.path)
    if (type !== 'file') return view(entry, 'This is neither a file nor a directory.')
    if (sizeBytes > SHOWN_BYTES) return view(entry, `It has ${formatSize(sizeBytes)}: too much to show here.`)
    const bytes = await files.readBytes(entry.path)
    view(entry, textOf(bytes) ?? 'It is not text.', textOf(bytes) !== undefined)
  }

  function view({ name, path }: Entry, text: string, isContent = false): void {
    const back = () => {
      viewer.hidden = true
      list.hidden = false
    }
    viewer.replaceChildren(
      element(
        'div',
        { className: 'bar' },
        button('← Back', back),
        element('strong', { textContent: name }),
        button(
          'Download',
          attempt(() => download(path)),
        ),
      ),
      isContent
        ? element('pre', { textContent: text, tabIndex: 0 })
        : element('p', { className: 'note', textContent: text }),
    )
    viewer.hidden = false
    list.hidden = true
    note.textContent = ''
  }

  /** A signed URL, because a download sends no header of ours; the browser writes it to the disk as it comes. */
  async function download(path: string): Promise<void> {
    const href = await files.downloadUrl(path, { expiresIn: DOWNLOAD_MS })
    element('a', { href, download: '', referrerPolicy: 'no-referrer' }).click()
  }

  async function upload(chosen: Iterable<File>): Promise<void> {
    const into = directory
    for (const file of chosen) {
      note.textContent = `Uploading ${file.name} …`
      await files.write(`${into === '/' ? '' : into}/${file.name}`, file)
    }
    await show(into)
  }

  const send = (chosen: Iterable<File>) =>
    upload(chosen).catch((error) => {
      note.textContent = 'The upload failed.'
      onError(error)
    })
  chooser.onchange = () => {
    void send([...(chooser.files ?? [])]).then(() => {
      chooser.value = ''
    })
  }
  const panel = element(
    'section',
    { className: 'files', ariaLabel: 'Files' },
    element(
      'div',
      { className: 'bar' },
      crumbs,
      button(
        'Refresh',
        attempt(() => show(directory)),
      ),
      button('Upload', () => chooser.click()),
    ),
    chooser,
    note,
    list,
    viewer,
  )
  panel.ondragover = (event) => {
    event.preventDefault()
    panel.classList.add('drop')
  }
  panel.ondragleave = () => panel.classList.remove('drop')
  panel.ondrop = (event) => {
    event.preventDefault()
    panel.classList.remove('drop')
    void send([...(event.dataTransfer?.files ?? [])])
  }
  show(start).catch(onError)
  return panel
}

function byKindAndName(one: Entry, other: Entry): number {
  const kind = Number(other.type === 'directory') - Number(one.type === 'directory')
  return kind || (one.name < other.name ? -1 : 1)
}

/** Undefined if it is not UTF-8 text. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function formatSize(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let unit = 0
  let size = bytes
  for (; size >= 1000 && unit < units.length - 1; unit++) size /= 1000
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`
}
