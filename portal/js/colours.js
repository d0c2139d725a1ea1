// Colours on canvases, by theme.

export const isDark = () => (document.documentElement.dataset.theme
  ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

const ramps = {
  light: [[238, 242, 255], [165, 180, 252], [99, 102, 241], [245, 158, 11], [220, 38, 38]],
  dark: [[27, 34, 54], [55, 65, 130], [99, 102, 241], [245, 158, 11], [248, 80, 80]],
};

// From cold to hot: 0 to 1.
export function heatColour(share) {
  const ramp = ramps[isDark() ? 'dark' : 'light'];
  const at = Math.max(0, Math.min(1, share)) * (ramp.length - 1);
  const i = Math.min(ramp.length - 2, Math.floor(at));
  const mix = ramp[i].map((from, n) => Math.round(from + (ramp[i + 1][n] - from) * (at - i)));
  return `rgb(${mix.join(',')})`;
}

const nodes = ['#6366f1', '#14b8a6', '#f59e0b', '#ec4899', '#0ea5e9', '#84cc16', '#a855f7', '#ef4444'];
export const nodeColour = (at) => nodes[at % nodes.length];

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas as wide as its place, sharp on every screen; draw(context, width, height) is called when either changes.
export function canvas(element, height, draw) {
  const redraw = () => {
    const width = Math.max(200, element.parentElement?.clientWidth ?? 800);
    const scale = devicePixelRatio || 1;
    const tall = typeof height === 'function' ? height() : height;
    element.width = width * scale;
    element.height = tall * scale;
    element.style.width = `${width}px`;
    element.style.height = `${tall}px`;
    const context = element.getContext('2d');
    context.scale(scale, scale);
    draw(context, width, tall);
  };
  let wide = 0;
  const observer = new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - wide) < 1) return;
    wide = entry.contentRect.width;
    redraw();
  });
  if (element.parentElement) observer.observe(element.parentElement);
  window.addEventListener('themechange', redraw);
  return { redraw, stop: () => { observer.disconnect(); window.removeEventListener('themechange', redraw); } };
}
