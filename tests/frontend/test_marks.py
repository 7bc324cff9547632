"""What else is known of where a tensor comes from: shared, expanded and flipped memory, and the colours of images."""
from cuvil.frontends.python.values import describe


def marks(found: dict) -> dict[str, set]:
    return {name: set(value.marks) for name, value in found.items() if hasattr(value, "marks")}


def test_shared_and_expanded_memory(bound):
    found = bound("""
        def f(x: Float[Tensor, "n 1"], array: np.ndarray):
            a = torch.from_numpy(array)
            b = a.clone()
            c = x.numpy()
            d = x.expand(-1, 5)
            e = d.contiguous()
            g = x.expand(-1, 1)
            h = d[0]
            i = np.broadcast_to(np.zeros(3), (4, 3))
            j = d + 1
    """)
    assert marks(found) == {"a": {"shared"}, "b": set(), "c": {"shared"}, "d": {"expanded"}, "e": set(), "g": set(), "h": {"expanded"}, "i": {"expanded"},
                            "j": set()}


def test_flipped_arrays(bound):
    found = bound("""
        def f():
            image = np.zeros((4, 4, 3), dtype=np.uint8)
            a = image[::-1]
            b = np.flip(image, 1)
            c = a.copy()
            d = np.ascontiguousarray(a)
            e = image[::2]
            t = torch.zeros(3).flip(0)
    """)
    assert marks(found) == {"image": set(), "a": {"negative-stride"}, "b": {"negative-stride"}, "c": set(), "d": set(), "e": set(), "t": set()}


def test_the_colours_of_images(bound):
    found = bound("""
        import cv2
        from PIL import Image
        def f(path):
            image = cv2.imread(path)
            a = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
            b = image[:, :, ::-1].copy()
            c = image[..., [2, 1, 0]]
            d = image[::-1]
            e = cv2.resize(image, (224, 200))
            g = torch.from_numpy(e).permute(2, 0, 1).float() / 255
            ok, frame = cv2.VideoCapture(0).read()
            h = np.array(Image.open(path).convert("RGB"))
            i = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
            j = image.mean(axis=2)
    """)
    assert {name: marks & {"bgr", "rgb"} for name, marks in marks(found).items()} == {
        "image": {"bgr"}, "a": {"rgb"}, "b": {"rgb"}, "c": {"rgb"}, "d": {"bgr"}, "e": {"bgr"}, "g": {"bgr"}, "frame": {"bgr"}, "h": {"rgb"}, "i": set(),
        "j": set()}
    assert describe(found["g"]) == "f32[3, 200, 224]" and "hwc" not in found["g"].marks and "hwc" in found["e"].marks


def test_a_session_is_fed_with_what_the_code_makes_whatever_the_names_are(facts):
    file = facts("""
        import onnxruntime as ort
        def f(session: ort.InferenceSession, raw: list):
            x = np.asarray(raw, dtype=float).reshape(1, -1)
            return session.run(None, {session.get_inputs()[0].name: x})
    """)
    run = next(call for call in file.function("f").calls if call.name == "onnxruntime.InferenceSession.run")
    assert describe(run.args[2]).startswith("{?: f64[1, ")
