// What goes on while a view is shown: asks again and again, not while the page is hidden, and never twice at a time.

export function repeat(f, everyMs) {
  let timer = null;
  let over = false;
  const turn = async () => {
    if (over) return;
    if (!document.hidden) {
      try {
        await f();
      } catch (error) {
        // what the server says is shown where it is asked for; anything else is a mistake of ours
        if (error.status === undefined && error.name !== 'AbortError') console.error(error);
      }
    }
    if (!over) timer = setTimeout(turn, typeof everyMs === 'function' ? everyMs() : everyMs);
  };
  turn();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
