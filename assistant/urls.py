from django.urls import path

from assistant import views

app_name = "assistant"
urlpatterns = [
    path("chat/", views.index, name="index"),
    path("chat/<int:conversation_id>/", views.thread, name="thread"),
    path("chat/<int:conversation_id>/messages/", views.post_message, name="post"),
    path("chat/<int:conversation_id>/tail/", views.tail, name="tail"),
    path("chat/<int:conversation_id>/verdicts/", views.judge, name="judge"),
    path("chat/<int:conversation_id>/turns/<int:turn_id>/stream/", views.stream, name="stream"),
    path("chat/<int:conversation_id>/turns/<int:turn_id>/answer/", views.answer, name="answer"),
    path("chat/<int:conversation_id>/turns/<int:turn_id>/stop/", views.stop, name="stop"),
    path("chat/<int:conversation_id>/turns/<int:turn_id>/retry/", views.retry, name="retry"),
    path("chat/<int:conversation_id>/turns/<int:turn_id>/continue/", views.continue_answer, name="continue"),
    path("chat/<int:conversation_id>/turns/<int:turn_id>/undo/", views.undo, name="undo"),
    path("chat/<int:conversation_id>/turns/<int:turn_id>/rating/", views.rate, name="rate"),
]
